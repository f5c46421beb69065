package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/factstream/factstream/services/gateway/projection"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/text"
)

func (s *Server) factRoutes(api huma.API) {
	operation(s, api, op(http.MethodGet, "/threads/{thread}/facts", "list-facts", "List active facts, oldest first", 404, 410), s.listFacts)
	operation(s, api, op(http.MethodGet, "/facts/{fact}", "get-fact", "One fact, active or not", 404), s.getFact)
}

func (s *Server) listFacts(_ context.Context, in *struct {
	ThreadPath
	Paged
	Include  string `query:"include" enum:"all" doc:"all: dropped, removed and dismissed ones too"`
	Tag      string `query:"tag"`
	Stale    string `query:"stale" enum:"true,false" doc:"Only those that are, or that are not"`
	Disputed string `query:"disputed" enum:"true,false"`
	Run      string `query:"run" doc:"Only those that this run added or found again"`
	Source   string `query:"source" doc:"Only those with this source in their support"`
}) (*Body[List[Fact]], error) {
	var list List[Fact]
	invalid := error(notFound("thread", in.Thread))
	var gone error
	s.Projection.ViewAll(func(n *notebook.Notebook) {
		t := n.Thread(in.Thread)
		if t.Deleted {
			gone = problem(http.StatusGone, "thread-deleted", "The thread was deleted, its facts with it. To ask again, open a new thread.")
		}
		if !t.Exists() {
			return
		}
		viewer := viewFacts(n, t, s.Now())
		list, invalid = page(slices.Values(t.FactIDs), func(id string) string { return id }, func(id string) bool {
			f := t.Facts[id]
			return (in.Include == "all" || f.Active()) && (in.Tag == "" || slices.Contains(f.Tags, in.Tag)) &&
				wantedOnly(in.Stale, func() bool { return viewer.staleSince(f) != nil }) &&
				wantedOnly(in.Disputed, func() bool { return viewer.disputed[id] }) &&
				viewer.foundIn(f, in.Run, in.Source)
		}, func(id string) Fact { return viewer.view(t.Facts[id]) }, in.Paged)
	})
	if gone != nil {
		return nil, gone
	}
	return body(list), invalid
}

// wantedOnly compares with a filter that may be absent.
func wantedOnly(filter string, is func() bool) bool {
	return filter == "" || (filter == "true") == is()
}

// foundIn says whether a fact was found by a run and in a source; each may be empty.
func (v *factViewer) foundIn(f *notebook.Fact, run, source string) bool {
	if run == "" && source == "" {
		return true
	}
	byRun, inSource := run == "" || f.Run == run, source == "" || f.Source != nil && f.Source.ID == source
	for _, place := range v.places(f) {
		byRun = byRun || place.Run == run
		inSource = inSource || place.Source != nil && place.Source.ID == source
	}
	return byRun && inSource
}

func (s *Server) getFact(ctx context.Context, in *struct {
	Fact string `path:"fact"`
}) (*Body[Fact], error) {
	if !text.ValidToken(in.Fact) {
		return nil, notFound("fact", in.Fact)
	}
	thread, err := s.Projection.ThreadOf(ctx, projection.Facts, in.Fact)
	if err != nil {
		return nil, err
	}
	var v *Fact
	s.Projection.ViewAll(func(n *notebook.Notebook) {
		t := n.Thread(thread)
		if f := t.Facts[in.Fact]; f != nil {
			view := viewFacts(n, t, s.Now()).view(f)
			v = &view
		}
	})
	if v == nil {
		return nil, notFound("fact", in.Fact)
	}
	return body(*v), nil
}
