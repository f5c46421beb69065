// Package distil makes facts of a report: single claims that stand alone, each with the sentences and the page it comes from.
//
// A model picks numbers of sentences and pages and writes plain statements; the excerpts, sources and ids are written here, from the
// report and from the pages that the provider cited.
package distil

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/jetstream/worker"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/engine"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/text"
)

// Distiller is the service.
type Distiller struct {
	*service.Service
	engines *engine.Engines
}

// Parts is the distiller with the default options, for service.Main.
func Parts(ctx context.Context, s *service.Service) ([]service.Part, error) {
	d, err := New(ctx, s, engine.Options{})
	if err != nil {
		return nil, err
	}
	return d.Parts(), nil
}

// New opens what the distiller needs on the bus of s.
func New(ctx context.Context, s *service.Service, options engine.Options) (*Distiller, error) {
	engines, err := engine.Open(ctx, s, options)
	if err != nil {
		return nil, err
	}
	return &Distiller{Service: s, engines: engines}, nil
}

// Parts are what the distiller does as long as it runs.
func (d *Distiller) Parts() []service.Part {
	return []service.Part{d.engines.Worker(engine.RunStage{
		Stage: event.StageDistill, Durable: topology.Distil, First: event.RunCompleted{}.Kind(),
		Kept: "The report is kept and nothing is bought again.", Points: points, Do: d.distill,
	})}
}

// points are where a test may end this process.
var points = engine.NewPoints("distiller")

// Classes of failures that are not the model's.
const (
	classReportMissing = "report_missing"
	classReportCorrupt = "report_corrupt"
)

// distill reads the report of a run, asks for the facts of every chunk, and keeps the surest of all.
func (d *Distiller) distill(ctx context.Context, run engine.Run, m *engine.Engine) (notebook.Command, error) {
	completed, question, err := d.completed(ctx, run)
	if err != nil {
		return nil, err
	}
	report, err := d.report(ctx, completed)
	if err != nil {
		return nil, err
	}
	if completed, err = d.claims(ctx, completed); err != nil {
		return nil, err
	}
	material := read(report, completed.Pages)

	out := notebook.Distil{Run: run.ID, N: run.N, Engine: m.Info.Engine, Model: m.Info.ChatModel, UnresolvedMarkers: material.unresolved}
	found := newHarvest(run.Thread, material)
	for i, chunk := range material.chunks {
		m.Say(ctx, fmt.Sprintf("chunk %d of %d", i+1, len(material.chunks)))
		task := model.DistillTask{Question: question, Sentences: chunk, Pages: material.pages, MaxFacts: notebook.MaxFacts}
		distilled, err := model.Distill(ctx, m.Call(part(i, chunk)), task)
		if err != nil {
			return nil, fmt.Errorf("chunk %d of %d: %w", i+1, len(material.chunks), err)
		}
		found.add(distilled)
	}
	out.Facts, out.LeftOut = found.surest(notebook.MaxFacts)
	out.Dropped = found.dropped
	return out, nil
}

// completed is what the run brought, and the question that it answers.
func (d *Distiller) completed(ctx context.Context, run engine.Run) (completed event.RunCompleted, question string, err error) {
	d.Tail.View(run.Thread, func(t *notebook.Thread) {
		if r := t.Runs[run.ID]; r != nil {
			question = r.Requested.Text
		}
	})
	if completed, delivered := run.Asks.Data.(event.RunCompleted); delivered {
		return completed, question, nil
	}
	completed, err = d.Tail.Completed(ctx, run.Thread, run.ID)
	switch {
	case errors.Is(err, notebook.ErrNoAnswer): // of a thread that was deleted, the step is not wanted any more
		return completed, question, worker.GiveUp(classReportMissing, fmt.Errorf("what the run brought is not in the stream any more: %w", err))
	case err != nil:
		return completed, question, fmt.Errorf("read what the run brought: %w", err)
	}
	return completed, question, nil
}

// report is the Markdown of the run. A report that is gone, or is not what was kept, ends the stage.
func (d *Distiller) report(ctx context.Context, completed event.RunCompleted) (string, error) {
	body, err := d.content(ctx, completed.Report)
	switch {
	case errors.Is(err, artifact.ErrMissing), errors.Is(err, artifact.ErrBadRef):
		return "", worker.GiveUp(classReportMissing, fmt.Errorf("the report of the run is not there any more: %w", err))
	case errors.Is(err, artifact.ErrCorrupt):
		return "", worker.GiveUp(classReportCorrupt, fmt.Errorf("the report of the run was damaged since it was kept: %w", err))
	case err != nil:
		return "", fmt.Errorf("read the report: %w", err)
	}
	return body, nil
}

// claims puts the claims of pages in their place that are kept outside the event. Claims only help the model, so a page whose claims
// are gone is shown without.
func (d *Distiller) claims(ctx context.Context, completed event.RunCompleted) (event.RunCompleted, error) {
	pages := make([]event.Page, len(completed.Pages))
	copy(pages, completed.Pages)
	for i, page := range pages {
		if page.Claims.Blob == nil {
			continue
		}
		body, err := d.content(ctx, *page.Claims.Blob)
		if err == nil {
			err = json.Unmarshal([]byte(body), &pages[i].Claims.Texts)
		}
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case err == nil:
		case errors.Is(err, artifact.ErrMissing), errors.Is(err, artifact.ErrBadRef), errors.Is(err, artifact.ErrCorrupt),
			errors.As(err, &syntax), errors.As(err, &kind):
			d.Log.Warn().Err(err).Int("page", page.N).Msg("claims of a page cannot be read; distilled without them")
		default:
			return completed, fmt.Errorf("read the claims of page %d: %w", page.N, err)
		}
	}
	completed.Pages = pages
	return completed, nil
}

// content is the text of a blob, from wherever it is.
func (d *Distiller) content(ctx context.Context, blob event.Blob) (string, error) {
	if blob.Ref == "" {
		return blob.Text, nil
	}
	body, err := d.Artifacts.Get(ctx, artifact.Ref{Ref: blob.Ref, SHA256: blob.SHA256, Size: blob.Size})
	return string(body), err
}

// part names a chunk for its reply. It holds the sentences, since the numbers in a kept reply mean nothing to a process that divides
// reports otherwise.
func part(i int, chunk []model.Numbered) string {
	parts := make([]string, 0, 2*len(chunk))
	for _, s := range chunk {
		parts = append(parts, strconv.Itoa(s.N), s.Text)
	}
	return strconv.Itoa(i+1) + "." + text.ID(parts...)
}
