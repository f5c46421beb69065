package api

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/factstream/factstream/services/gateway/projection"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/deletion"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/text"
)

// progressWait bounds how long an answer waits to hear what is being done: it is for people who watch, and left out rather than waited for.
const progressWait = 500 * time.Millisecond

// RequestRun is the body of POST /threads/{t}/runs.
type RequestRun struct {
	Question string `json:"question,omitempty" doc:"Left out: the thread's own question"`
	Mode     string `json:"mode,omitempty" doc:"fast or balanced; left out: the thread's"`
	Nocache  bool   `json:"nocache,omitempty" doc:"Have the provider look again"`
}

// DeletedRun is what is left of a deleted run's receipt.
type DeletedRun struct {
	ID        string `json:"id"`
	Deleted   bool   `json:"deleted"`
	Projected bool   `json:"projected"`
	Purged    bool   `json:"purged" doc:"Whether everything is gone already; what is left is removed later"`
}

// RunPath is the part of an input that names a run.
type RunPath struct {
	Run string `path:"run"`
}

func (s *Server) runRoutes(api huma.API) {
	request := op(http.MethodPost, "/threads/{thread}/runs", "request-run", "Ask once, in any status", 402, 404, 409, 410)
	request.DefaultStatus = http.StatusAccepted
	operation(s, api, request, s.requestRun)
	operation(s, api, op(http.MethodGet, "/threads/{thread}/runs", "list-runs", "List runs, oldest first", 404, 410), s.listRuns)
	operation(s, api, op(http.MethodGet, "/runs/{run}", "get-run", "One run", 404), s.getRun)
	operation(s, api, op(http.MethodDelete, "/runs/{run}", "delete-run", "Delete the receipt, report and trail; facts stay", 404, 409), s.deleteRun)
	operation(s, api, op(http.MethodPost, "/runs/{run}/cancel", "cancel-run", "Release it, and close its connection", 404, 409), s.cancelRun)
	retry := op(http.MethodPost, "/runs/{run}/stages/{stage}/retry", "retry-stage", "Do a stage of the run or of its cycle again", 404, 409, 410)
	retry.DefaultStatus = http.StatusAccepted
	operation(s, api, retry, s.retryStage)
	report := op(http.MethodGet, "/runs/{run}/report", "get-report", "The report as it came", 404, 410)
	report.Responses = map[string]*huma.Response{"200": {Description: "Markdown", Content: map[string]*huma.MediaType{"text/markdown": {Schema: &huma.Schema{Type: "string"}}}}}
	operation(s, api, report, s.getReport)
}

func (s *Server) requestRun(ctx context.Context, in *struct {
	ThreadPath
	Keyed
	Body *RequestRun
}) (*Body[Run], error) {
	if !text.ValidToken(in.Thread) {
		return nil, notFound("thread", in.Thread)
	}
	asked := RequestRun{}
	if in.Body != nil {
		asked = *in.Body
	}
	if asked.Question != "" && strings.TrimSpace(asked.Question) == "" {
		return nil, problem(http.StatusUnprocessableEntity, "invalid-question", "The question is empty. Leave it out to ask the thread's own question. Nothing was spent.")
	}
	a, err := s.access(ctx, in.Thread)
	if err != nil {
		return nil, err
	}
	r, err := identify(in.Keyed, "request-run/"+in.Thread, asked)
	if err != nil {
		return nil, err
	}
	run := text.ID("run", in.Thread, "request", r.key)
	projected, err := s.once(ctx, in.Thread, notebook.RequestRun{
		Run: run, Question: strings.TrimSpace(asked.Question), Mode: asked.Mode, Nocache: asked.Nocache, Access: a,
	}, r)
	if err != nil {
		return nil, err
	}
	return s.runAnswer(ctx, in.Thread, run, projected), nil
}

// runAnswer is a run after a write, read from what the write was decided on.
func (s *Server) runAnswer(ctx context.Context, thread, run string, projected bool) *Body[Run] {
	var v Run
	s.Tail.View(thread, func(t *notebook.Thread) {
		if r := t.Runs[run]; r != nil {
			v = runView(t, r, nil, s.Now())
		}
	})
	v.Projected = &projected
	if err := s.putMetadata(ctx, inline, &v); err != nil { // what was written is written
		s.Log.Warn().Err(err).Str("run", run).Msg("a run is shown without its metadata")
	}
	return body(v)
}

// putMetadata adds to runs what their providers said about them.
func (s *Server) putMetadata(ctx context.Context, content func(context.Context, event.Blob) []byte, runs ...*Run) error {
	var ids []string
	for _, r := range runs {
		if r.Status == "completed" { // before, there is none to be looked for
			ids = append(ids, r.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	metadata, err := s.Projection.Metadata(ctx, ids)
	if err != nil {
		return err
	}
	for _, r := range runs {
		if b, said := metadata[r.ID]; said && !r.Deleted {
			if body := content(ctx, b); json.Valid(body) {
				r.Metadata = body
			}
		}
	}
	return nil
}

// inline is the content of a blob as far as it is at hand: lists go without what is bulky.
func inline(_ context.Context, b event.Blob) []byte { return []byte(b.Text) }

// fetched is the content of a blob, wherever it is; nothing when it cannot be had.
func (s *Server) fetched(ctx context.Context, b event.Blob) []byte {
	if b.Ref == "" {
		return []byte(b.Text)
	}
	content, err := s.Artifacts.Get(ctx, artifact.Ref{Ref: b.Ref, SHA256: b.SHA256, Size: b.Size})
	if err != nil {
		s.Log.Warn().Err(err).Str("artifact", b.Ref).Msg("the metadata of a run cannot be fetched")
	}
	return content
}

func (s *Server) listRuns(ctx context.Context, in *struct {
	ThreadPath
	Paged
}) (*Body[List[Run]], error) {
	watching := s.board(ctx, in.Thread)
	var list List[Run]
	var invalid error
	err := s.existing(in.Thread, func(t *notebook.Thread) {
		list, invalid = page(slices.Values(t.RunIDs), func(id string) string { return id }, all[string],
			func(id string) Run { return runView(t, t.Runs[id], watching, s.Now()) }, in.Paged)
	})
	if err == nil {
		err = invalid
	}
	if err == nil {
		shown := make([]*Run, len(list.Items))
		for i := range list.Items {
			shown[i] = &list.Items[i]
		}
		err = s.putMetadata(ctx, inline, shown...)
	}
	return body(list), err
}

// board hears what is being done for a thread, if something is.
func (s *Server) board(ctx context.Context, thread string) board {
	busy := false
	s.Projection.View(thread, func(t *notebook.Thread) { busy = t.Exists() && len(notebook.Next(t)) > 0 })
	if !busy {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, progressWait)
	defer cancel()
	entries, err := s.Progress.Read(ctx, thread)
	if err != nil {
		s.Log.Debug().Err(err).Str("thread", thread).Msg("no word of what is being done")
	}
	return boardOf(entries)
}

// withRun finds the thread of a run and reads both.
func (s *Server) withRun(ctx context.Context, run string, read func(*notebook.Thread, *notebook.Run)) (thread string, err error) {
	if !text.ValidToken(run) {
		return "", notFound("run", run)
	}
	if thread, err = s.Projection.ThreadOf(ctx, projection.Runs, run); err != nil {
		return "", err
	}
	found := false
	s.Projection.View(thread, func(t *notebook.Thread) {
		if r := t.Runs[run]; r != nil {
			read(t, r)
			found = true
		}
	})
	if !found { // deleted this moment
		return "", notFound("run", run)
	}
	return thread, nil
}

func (s *Server) getRun(ctx context.Context, in *RunPath) (*Body[Run], error) {
	thread, err := s.withRun(ctx, in.Run, func(*notebook.Thread, *notebook.Run) {})
	if err != nil {
		return nil, err
	}
	watching := s.board(ctx, thread)
	var v Run
	if _, err := s.withRun(ctx, in.Run, func(t *notebook.Thread, r *notebook.Run) { v = runView(t, r, watching, s.Now()) }); err != nil {
		return nil, err
	}
	if err := s.putMetadata(ctx, s.fetched, &v); err != nil {
		return nil, err
	}
	return body(v), nil
}

func (s *Server) cancelRun(ctx context.Context, in *struct {
	RunPath
	Keyed
}) (*Body[Run], error) {
	thread, err := s.withRun(ctx, in.Run, func(*notebook.Thread, *notebook.Run) {})
	if err != nil {
		return nil, err
	}
	r, err := identify(in.Keyed, "cancel-run/"+in.Run, nil)
	if err != nil {
		return nil, err
	}
	projected, err := s.do(ctx, thread, notebook.CancelRun{Run: in.Run}, r)
	if err != nil {
		return nil, err
	}
	return s.runAnswer(ctx, thread, in.Run, projected), nil
}

func (s *Server) deleteRun(ctx context.Context, in *struct {
	RunPath
	Keyed
}) (*Body[DeletedRun], error) {
	thread, err := s.withRun(ctx, in.Run, func(*notebook.Thread, *notebook.Run) {})
	if err != nil {
		return nil, err
	}
	r, err := identify(in.Keyed, "delete-run/"+in.Run, nil)
	if err != nil {
		return nil, err
	}
	projected, err := s.do(ctx, thread, notebook.DeleteRun{Run: in.Run}, r)
	if err != nil {
		return nil, err
	}
	if err := pointBuried.Hit(ctx); err != nil {
		return nil, err
	}
	v := DeletedRun{ID: in.Run, Deleted: true, Projected: projected, Purged: true}
	var receipt deletion.Receipt
	s.Tail.View(thread, func(t *notebook.Thread) { receipt = deletion.ReceiptOf(t, in.Run) })
	purging, cancel := context.WithTimeout(context.WithoutCancel(ctx), notebook.CommandTimeout)
	defer cancel()
	if err := deletion.PurgeRun(purging, s.JS, s.Artifacts, receipt); err != nil {
		s.Log.Warn().Err(err).Str("run", in.Run).Msg("the receipt of a deleted run is not all gone yet")
		v.Purged = false
	}
	return body(v), nil
}

// retryStage does a stage again: one of the run itself, or one of its cycle's end.
func (s *Server) retryStage(ctx context.Context, in *struct {
	RunPath
	Keyed
	Stage string `path:"stage"`
}) (*Body[Run], error) {
	entity := in.Run
	thread, err := s.withRun(ctx, in.Run, func(_ *notebook.Thread, r *notebook.Run) {
		switch in.Stage {
		case event.StageQuestions, event.StageBrief, event.StageCoverage, event.StageDigest:
			entity = strconv.Itoa(r.Requested.Cycle)
		}
	})
	if err != nil {
		return nil, err
	}
	r, err := identify(in.Keyed, "retry-stage/"+in.Run+"/"+in.Stage, nil)
	if err != nil {
		return nil, err
	}
	projected, err := s.once(ctx, thread, notebook.RetryStage{Stage: in.Stage, Entity: entity}, r)
	if err != nil {
		return nil, err
	}
	return s.runAnswer(ctx, thread, in.Run, projected), nil
}

// Report is the Markdown of a run.
type Report struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (s *Server) getReport(ctx context.Context, in *RunPath) (*Report, error) {
	markdown, err := s.report(ctx, in.Run, func(*notebook.Thread, *notebook.Run) {})
	if err != nil {
		return nil, err
	}
	return &Report{ContentType: "text/markdown; charset=utf-8", Body: []byte(markdown)}, nil
}

// untilReport says what brings a report, by the status of a run that has none.
var untilReport = map[string]string{
	"requested": "It has one when it has completed.", "running": "It has one when it has completed.",
	"failed": "Ask the question again.", "withdrawn": "Ask the question again.",
}

// report gives the Markdown of a run's report, or says why there is none.
func (s *Server) report(ctx context.Context, run string, read func(*notebook.Thread, *notebook.Run)) (string, error) {
	var missing error
	_, err := s.withRun(ctx, run, func(t *notebook.Thread, r *notebook.Run) {
		switch {
		case r.Deleted:
			missing = problem(http.StatusGone, "run-deleted", "The receipt of this run was deleted, its report with it. Its facts are kept.")
		case r.Completed == nil:
			missing = problem(http.StatusNotFound, "no-report", "The run has no report: it is %s. %s", r.Status, untilReport[r.Status]).with("status_of_run", r.Status)
		default:
			read(t, r)
		}
	})
	if err == nil {
		err = missing
	}
	if err != nil {
		return "", err
	}
	return s.Projection.Report(ctx, run)
}
