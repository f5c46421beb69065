package api

import (
	"context"

	"github.com/factstream/factstream/services/gateway/web"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/text"
)

// reportForPage gives a run's report with the pages that it cites. Only addresses of the web are given as such.
func (s *Server) reportForPage(ctx context.Context, run string) (web.Report, error) {
	var report web.Report
	markdown, err := s.report(ctx, run, func(t *notebook.Thread, r *notebook.Run) {
		report = web.Report{Question: r.Requested.Text, Thread: t.ID, Replayed: r.Requested.Replay}
	})
	if err != nil {
		return web.Report{}, s.problemOf(err)
	}
	pages, err := s.Projection.Pages(ctx, run)
	if err != nil {
		return web.Report{}, s.problemOf(err)
	}
	for _, p := range pages {
		page := web.Page{N: p.N, Title: p.Title}
		if _, err := text.CanonicalURL(p.URL); err == nil {
			page.URL = p.URL
		}
		report.Pages = append(report.Pages, page)
	}
	report.Markdown = markdown
	return report, nil
}
