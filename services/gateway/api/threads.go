package api

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/factstream/factstream/shared/access"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/deletion"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/settings"
	"github.com/factstream/factstream/shared/text"
)

// Defaults of a new Tabstack thread that no setting covers.
const defaultBatch = 1

// CreateThread is the body of POST /threads. What is left out comes from the settings.
type CreateThread struct {
	Question     string   `json:"question" doc:"1 to 10,000 code points"`
	Title        *string  `json:"title,omitempty" doc:"Made from the question when left out"`
	Tags         []string `json:"tags,omitempty"`
	Provider     *string  `json:"provider,omitempty"`
	Mode         *string  `json:"mode,omitempty" doc:"fast or balanced"`
	Budget       *int     `json:"budget,omitempty" doc:"Credits; reserved and spent together never exceed it"`
	Depth        *int     `json:"depth,omitempty"`
	Batch        *int     `json:"batch,omitempty"`
	Auto         *bool    `json:"auto,omitempty" doc:"Plan and run follow-ups. Left out: on, unless what would be asked now is a recorded stream"`
	AnswerBudget *int     `json:"answer_budget,omitempty"`
	Engine       *string  `json:"engine,omitempty" doc:"auto, ollama or extractive"`
}

// PatchThread is the body of PATCH /threads/{t}: what is left out stays.
type PatchThread struct {
	Title        *string       `json:"title,omitempty"`
	Tags         *[]string     `json:"tags,omitempty"`
	Archived     *bool         `json:"archived,omitempty"`
	Provider     *string       `json:"provider,omitempty"`
	Mode         *string       `json:"mode,omitempty"`
	Budget       *int          `json:"budget,omitempty"`
	Depth        *int          `json:"depth,omitempty"`
	Batch        *int          `json:"batch,omitempty"`
	Auto         *bool         `json:"auto,omitempty"`
	AnswerBudget Nullable[int] `json:"answer_budget,omitempty,omitzero" doc:"null takes the limit away"`
	Engine       *string       `json:"engine,omitempty"`
}

// DeletedThread is what is left of a deleted thread.
type DeletedThread struct {
	ID        string `json:"id"`
	Deleted   bool   `json:"deleted"`
	Spent     int    `json:"spent" doc:"Credits; known for ever"`
	Projected bool   `json:"projected"`
	Purged    bool   `json:"purged" doc:"Whether everything is gone already; what is left is removed within the hour"`
}

// ThreadPath is the part of an input that names a thread.
type ThreadPath struct {
	Thread string `path:"thread"`
}

func (s *Server) threadRoutes(api huma.API) {
	create := op(http.MethodPost, "/threads", "create-thread", "Open a thread; nothing is spent", http.StatusGone)
	create.DefaultStatus = http.StatusCreated
	operation(s, api, create, s.createThread)
	operation(s, api, op(http.MethodGet, "/threads", "list-threads", "List threads, newest first"), s.listThreads)
	operation(s, api, op(http.MethodGet, "/threads/{thread}", "get-thread", "One thread, now or in the past", 404, 410), s.getThread)
	operation(s, api, op(http.MethodPatch, "/threads/{thread}", "change-thread", "Change settings, title, tags, archived", 404, 409, 410), s.patchThread)
	operation(s, api, op(http.MethodDelete, "/threads/{thread}", "delete-thread", "Delete everything of a thread", 404, 410), s.deleteThread)
	operation(s, api, op(http.MethodPost, "/threads/{thread}/start", "start-thread", "Let autopilot ask", 404, 409, 410), s.startThread)
	operation(s, api, op(http.MethodPost, "/threads/{thread}/pause", "pause-thread", "Stop asking; the call under way finishes", 404, 410), s.pauseThread)
	rebuild := op(http.MethodPost, "/threads/{thread}/rebuild", "rebuild-thread", "Derive all facts again from the reports that are kept", 404, 409, 410)
	rebuild.DefaultStatus = http.StatusAccepted
	operation(s, api, rebuild, s.rebuildThread)
}

func (s *Server) createThread(ctx context.Context, in *struct {
	Keyed
	Body CreateThread
}) (*Body[Thread], error) {
	effective, err := s.effective(ctx)
	if err != nil {
		return nil, err
	}
	cmd, err := in.Body.command(effective, s.Config)
	if err != nil {
		return nil, err
	}
	r, err := identify(in.Keyed, "create-thread", in.Body)
	if err != nil {
		return nil, err
	}
	thread := text.ID("thread", r.key)
	projected, err := s.once(ctx, thread, cmd, r)
	if err != nil {
		return nil, err
	}
	return s.threadAnswer(thread, projected), nil
}

// command fills in what was left out. Autopilot over a recorded stream, which answers every question alike, is only for who asks for it.
func (c CreateThread) command(defaults settings.Settings, cfg config.Config) (notebook.CreateThread, error) {
	provider := or(c.Provider, defaults.Provider)
	cmd := notebook.CreateThread{
		Question: strings.TrimSpace(c.Question), Tags: c.Tags,
		Settings: event.Settings{
			Provider: provider, Mode: or(c.Mode, defaults.Mode), Budget: or(c.Budget, defaults.Budget),
			Depth: or(c.Depth, defaults.Depth), Batch: or(c.Batch, defaultBatch), Auto: or(c.Auto, access.Of(defaults, cfg, provider).Live),
			Engine: or(c.Engine, defaults.Engine), AnswerBudget: c.AnswerBudget,
		},
	}
	if c.Title != nil {
		cmd.Title = strings.TrimSpace(*c.Title)
	}
	return cmd, availableProvider(cmd.Settings.Provider)
}

// availableProvider refuses a provider that no worker serves: its runs would wait for ever.
func availableProvider(provider string) error {
	if provider != event.Tabstack {
		return problem(http.StatusUnprocessableEntity, "invalid-provider", "The provider %q is not available; %s is. Nothing was changed.",
			text.Truncate(provider, 40), event.Tabstack)
	}
	return nil
}

func or[T any](given *T, otherwise T) T {
	if given != nil {
		return *given
	}
	return otherwise
}

// effective loads the settings that count. A key that cannot be read does not matter here: nothing is called.
func (s *Server) effective(ctx context.Context) (settings.Settings, error) {
	saved, err := s.Settings.Load(ctx)
	var unreadable *settings.KeyError
	if err != nil && !errors.As(err, &unreadable) {
		return settings.Settings{}, err
	}
	return saved.Effective(s.Config), nil
}

// threadAnswer is a thread after a write. It is read from what the write was decided on, so it is whole even when the projection lags.
func (s *Server) threadAnswer(thread string, projected bool) *Body[Thread] {
	var v Thread
	s.Tail.View(thread, func(t *notebook.Thread) { v = threadView(t) })
	v.Projected = &projected
	return body(v)
}

func (s *Server) listThreads(ctx context.Context, in *struct {
	Paged
	Status   string `query:"status" enum:"new,running,paused,idle,complete"`
	Tag      string `query:"tag"`
	Archived bool   `query:"archived" doc:"The archived ones instead of the others"`
	AsOf     string `query:"as_of" doc:"RFC 3339: the notebook as it was"`
}) (*Body[List[Thread]], error) {
	var list List[Thread]
	var err error
	read := func(n *notebook.Notebook) {
		list, err = page(newestFirst(n), func(t *notebook.Thread) string { return t.ID }, func(t *notebook.Thread) bool {
			if !t.Exists() || t.Archived != in.Archived || in.Tag != "" && !slices.Contains(t.Tags, in.Tag) {
				return false
			}
			status, _ := t.Status()
			return in.Status == "" || status == in.Status
		}, threadView, in.Paged)
	}
	if in.AsOf == "" {
		s.Projection.ViewAll(read)
		return body(list), err
	}
	at, err := parseAsOf(in.AsOf)
	if err != nil {
		return nil, err
	}
	past, err := s.Projection.AsOf(ctx, "", at)
	if err != nil {
		return nil, err
	}
	read(past)
	return body(list), err
}

func newestFirst(n *notebook.Notebook) iter.Seq[*notebook.Thread] {
	return func(yield func(*notebook.Thread) bool) {
		for _, t := range slices.Backward(n.Threads()) {
			if !yield(t) {
				return
			}
		}
	}
}

func parseAsOf(value string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		if at, err := time.Parse(layout, value); err == nil {
			return at, nil
		}
	}
	return time.Time{}, problem(http.StatusUnprocessableEntity, "invalid-time", "as_of is %q; it must be a time such as 2026-01-31T12:00:00Z.", text.Truncate(value, 40))
}

func (s *Server) getThread(ctx context.Context, in *struct {
	ThreadPath
	AsOf string `query:"as_of" doc:"RFC 3339: the thread as it was"`
}) (*Body[Thread], error) {
	var v Thread
	err := s.existing(in.Thread, func(t *notebook.Thread) { v = threadView(t) })
	if err != nil || in.AsOf == "" {
		return body(v), err
	}
	at, err := parseAsOf(in.AsOf)
	if err != nil {
		return nil, err
	}
	past, err := s.Projection.AsOf(ctx, in.Thread, at)
	if err != nil {
		return nil, err
	}
	t := past.Thread(in.Thread)
	if !t.Exists() {
		return nil, problem(http.StatusNotFound, "not-found", "The thread was not there yet at %s; created_at says since when it is.", at.UTC().Format(time.RFC3339))
	}
	return body(threadView(t)), nil
}

// existing reads a thread from the projection: 404 when there is none, 410 over a tombstone.
func (s *Server) existing(thread string, read func(*notebook.Thread)) error {
	err := error(notFound("thread", thread))
	s.Projection.View(thread, func(t *notebook.Thread) {
		switch {
		case t.Deleted:
			err = problem(http.StatusGone, "thread-deleted", "The thread was deleted. Only what it cost is still known: %d credits. To ask again, open a new thread.", t.Ledger.Spent).with("spent", t.Ledger.Spent)
		case t.Exists():
			read(t)
			err = nil
		}
	})
	return err
}

func (s *Server) patchThread(ctx context.Context, in *struct {
	ThreadPath
	Keyed
	Body PatchThread
}) (*Body[Thread], error) {
	b := in.Body
	changes := event.ThreadConfigured{
		Title: trimmed(b.Title), Tags: b.Tags, Provider: b.Provider, Mode: b.Mode, Depth: b.Depth, Batch: b.Batch, Auto: b.Auto, Engine: b.Engine, Budget: b.Budget,
	}
	if b.Provider != nil {
		if err := availableProvider(*b.Provider); err != nil {
			return nil, err
		}
	}
	if a := b.AnswerBudget; a.Set {
		limit := -1 // takes it away
		if a.Value != nil {
			if limit = *a.Value; limit < 0 {
				return nil, problem(http.StatusUnprocessableEntity, "invalid-answer-budget", "The answer budget is %d; it must not be negative (null takes the limit away). Nothing was changed.", limit)
			}
		}
		changes.AnswerBudget = &limit
	}
	return s.threadCommand(ctx, in.Keyed, "change-thread", in.Thread, notebook.Configure{Changes: changes, Archived: b.Archived}, in.Body)
}

func trimmed(s *string) *string {
	if s == nil {
		return nil
	}
	t := strings.TrimSpace(*s)
	return &t
}

// threadCommand does a command once per key and answers the thread.
func (s *Server) threadCommand(ctx context.Context, key Keyed, operation, thread string, cmd notebook.Command, content any) (*Body[Thread], error) {
	if !text.ValidToken(thread) {
		return nil, notFound("thread", thread)
	}
	r, err := identify(key, operation+"/"+thread, content)
	if err != nil {
		return nil, err
	}
	projected, err := s.once(ctx, thread, cmd, r)
	if err != nil {
		return nil, err
	}
	return s.threadAnswer(thread, projected), nil
}

// deleteThread puts the tombstone, which is what counts, and then takes away what it can. The rest is the janitor's.
func (s *Server) deleteThread(ctx context.Context, in *struct {
	ThreadPath
	Keyed
}) (*Body[DeletedThread], error) {
	if !text.ValidToken(in.Thread) {
		return nil, notFound("thread", in.Thread)
	}
	r, err := identify(in.Keyed, "delete-thread/"+in.Thread, nil)
	if err != nil {
		return nil, err
	}
	projected, err := s.do(ctx, in.Thread, notebook.DeleteThread{}, r)
	if err != nil {
		return nil, err
	}
	v := DeletedThread{ID: in.Thread, Deleted: true, Projected: projected, Purged: true}
	s.Tail.View(in.Thread, func(t *notebook.Thread) { v.Spent = t.Ledger.Spent })
	if err := pointBuried.Hit(ctx); err != nil {
		return nil, err
	}
	// The tombstone stands, whether or not the caller waits.
	purging, cancel := context.WithTimeout(context.WithoutCancel(ctx), notebook.CommandTimeout)
	defer cancel()
	if err := deletion.Purge(purging, s.JS, s.Artifacts, in.Thread); err != nil {
		s.Log.Warn().Err(err).Str("thread", in.Thread).Msg("a deleted thread is not all gone yet; the janitor repeats it")
		v.Purged = false
	}
	return body(v), nil
}

func (s *Server) startThread(ctx context.Context, in *struct {
	ThreadPath
	Keyed
}) (*Body[Thread], error) {
	a, err := s.access(ctx, in.Thread)
	if err != nil {
		return nil, err
	}
	return s.repeatable(ctx, in.Keyed, "start-thread", in.Thread, notebook.Start{Access: a})
}

func (s *Server) pauseThread(ctx context.Context, in *struct {
	ThreadPath
	Keyed
}) (*Body[Thread], error) {
	return s.repeatable(ctx, in.Keyed, "pause-thread", in.Thread, notebook.Pause{})
}

// repeatable does a command that is idempotent by itself: asked again it looks at the thread again.
func (s *Server) repeatable(ctx context.Context, key Keyed, operation, thread string, cmd notebook.Command) (*Body[Thread], error) {
	if !text.ValidToken(thread) {
		return nil, notFound("thread", thread)
	}
	r, err := identify(key, operation+"/"+thread, nil)
	if err != nil {
		return nil, err
	}
	projected, err := s.do(ctx, thread, cmd, r)
	if err != nil {
		return nil, err
	}
	return s.threadAnswer(thread, projected), nil
}

func (s *Server) rebuildThread(ctx context.Context, in *struct {
	ThreadPath
	Keyed
}) (*Body[Thread], error) {
	return s.threadCommand(ctx, in.Keyed, "rebuild-thread", in.Thread, notebook.RebuildThread{}, nil)
}

// access says what a call for a thread would be now.
func (s *Server) access(ctx context.Context, thread string) (notebook.Access, error) {
	provider := event.Tabstack
	s.Tail.View(thread, func(t *notebook.Thread) {
		if t.Exists() {
			provider = t.Settings.Provider
		}
	})
	a, err := access.Load(ctx, s.Settings, s.Config, provider)
	return a.Access, err
}
