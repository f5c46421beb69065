package api

import (
	"context"
	"iter"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/factstream/factstream/services/gateway/projection"
	"github.com/factstream/factstream/shared/notebook"
)

func (s *Server) knowledgeRoutes(api huma.API) {
	operation(s, api, op(http.MethodGet, "/threads/{thread}/sources", "list-sources", "List cited pages, united by canonical URL", 404, 410), s.listSources)
	operation(s, api, op(http.MethodGet, "/threads/{thread}/contradictions", "list-contradictions", "List facts that cannot both be true", 404, 410), s.listContradictions)
	historyRoute[Brief](s, api, op(http.MethodGet, "/threads/{thread}/brief", "get-brief", "The newest brief, or all with history=true", 404, 410), s.brief)
	historyRoute[Coverage](s, api, op(http.MethodGet, "/threads/{thread}/coverage", "get-coverage", "The newest map of topics, or all with history=true", 404, 410), s.coverage)
}

func (s *Server) listSources(ctx context.Context, in *struct {
	ThreadPath
	Paged
}) (*Body[List[Source]], error) {
	if err := s.existing(in.Thread, func(*notebook.Thread) {}); err != nil {
		return nil, err
	}
	sources, err := s.Projection.Sources(ctx, in.Thread)
	if err != nil {
		return nil, err
	}
	list, err := page(slices.Values(sources), func(c projection.Source) string { return c.ID }, all[projection.Source], sourceView, in.Paged)
	return body(list), err
}

func (s *Server) listContradictions(_ context.Context, in *struct {
	ThreadPath
	Paged
}) (*Body[List[Contradiction]], error) {
	if err := s.existing(in.Thread, func(*notebook.Thread) {}); err != nil {
		return nil, err
	}
	var list List[Contradiction]
	var err error
	s.Projection.ViewAll(func(n *notebook.Notebook) {
		t := n.Thread(in.Thread)
		viewer := viewFacts(n, t, s.Now())
		list, err = page(pairs(t), func(p *notebook.Pair) string { return p.Pair }, contradicts(t),
			func(p *notebook.Pair) Contradiction { return contradictionView(viewer, p) }, in.Paged)
	})
	return body(list), err
}

// pairs lists all that was ever judged about a thread's facts, so that a cursor is found again when its contradiction is gone.
func pairs(t *notebook.Thread) iter.Seq[*notebook.Pair] {
	return func(yield func(*notebook.Pair) bool) {
		for _, id := range t.PairIDs {
			if !yield(t.Pairs[id]) {
				return
			}
		}
	}
}

func contradicts(t *notebook.Thread) func(*notebook.Pair) bool {
	open := map[string]bool{}
	for _, p := range t.Contradictions() {
		open[p.Pair] = true
	}
	return func(p *notebook.Pair) bool { return open[p.Pair] }
}

// historyInput asks for the newest, or for all.
type historyInput struct {
	ThreadPath
	Paged
	History bool `query:"history" doc:"List all, newest first"`
}

// historyRoute registers an endpoint that answers either one T or a list of them.
func historyRoute[T any](s *Server, api huma.API, op huma.Operation, get func(context.Context, *historyInput) (any, error)) {
	schemas := api.OpenAPI().Components.Schemas
	op.Responses = map[string]*huma.Response{"200": respond("The newest, or a list", "application/json", &huma.Schema{OneOf: []*huma.Schema{
		schemas.Schema(reflect.TypeFor[T](), true, ""), schemas.Schema(reflect.TypeFor[List[T]](), true, ""),
	}})}
	operation(s, api, op, func(ctx context.Context, in *historyInput) (*Body[any], error) {
		v, err := get(ctx, in)
		if err != nil {
			return nil, err
		}
		return body(v), nil
	})
}

func (s *Server) brief(ctx context.Context, in *historyInput) (any, error) {
	var newest *Brief
	err := s.existing(in.Thread, func(t *notebook.Thread) {
		if t.Brief != nil {
			v := briefView(*t.Brief)
			newest = &v
		}
	})
	switch {
	case err != nil:
		return nil, err
	case in.History:
		briefs, err := s.Projection.Briefs(ctx, in.Thread)
		if err != nil {
			return nil, err
		}
		return page(slices.Values(briefs), func(b notebook.Brief) string { return closingID(b.Cycle, b.Closing) }, all[notebook.Brief], briefView, in.Paged)
	case newest == nil:
		return nil, problem(http.StatusNotFound, "no-brief", "The thread has no brief yet: it is written when the first cycle ends. Ask once, or start the thread.")
	}
	return *newest, nil
}

func (s *Server) coverage(ctx context.Context, in *historyInput) (any, error) {
	var newest *Coverage
	err := s.existing(in.Thread, func(t *notebook.Thread) {
		if t.Coverage != nil {
			v := coverageView(*t.Coverage)
			newest = &v
		}
	})
	switch {
	case err != nil:
		return nil, err
	case in.History:
		maps, err := s.Projection.Coverages(ctx, in.Thread)
		if err != nil {
			return nil, err
		}
		return page(slices.Values(maps), func(c notebook.Coverage) string { return closingID(c.Cycle, c.Closing) }, all[notebook.Coverage], coverageView, in.Paged)
	case newest == nil:
		return nil, problem(http.StatusNotFound, "no-coverage", "The thread has no map of topics yet: it is made when the first cycle ends. Ask once, or start the thread.")
	}
	return *newest, nil
}

func closingID(cycle, closing int) string { return strconv.Itoa(cycle) + "." + strconv.Itoa(closing) }
