package research

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/factstream/factstream/services/researcher/provider"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/text"
)

// Sizes of the event run.completed, in bytes.
const (
	// bodyLimit is from where on bulky fields go to the artifacts.
	bodyLimit = 256 << 10
	// hardLimit is what no event may exceed, since other people's clusters take 1 MiB with headers: beyond it page
	// summaries, titles and in the end pages are left out of the event. The raw answer has all of them.
	hardLimit = 800 << 10
	// Limits of single fields that nobody reads in full.
	maxUsage  = 16 << 10
	maxGap    = 500 // code points
	maxGaps   = 20
	maxNoURL  = 200 // code points of a page's address that is none of the web (a data: URL may hold a whole picture)
	maxNotes  = 50
	maxNote   = 500
	shortText = 300
)

// keeper keeps contents among the artifacts and gives what stands for each in the event. An empty one stands for itself.
type keeper func(contents []string) ([]event.Blob, error)

// report makes the event of a whole answer: what is bulky is kept first and referred to.
func (r *Researcher) report(ctx context.Context, j job, a answer, raw artifact.Ref) (event.RunCompleted, error) {
	keep := func(contents []string) ([]event.Blob, error) { return r.keepAll(ctx, j.thread, contents) }
	done := completed(j, a)
	done.Raw = blob(raw)
	texts := make([]string, len(a.result.Pages))
	for i, p := range a.result.Pages {
		texts[i] = p.FullText
	}
	kept, err := keep(texts)
	if err != nil {
		return done, err
	}
	for i := range kept {
		done.Pages[i].FullText = kept[i]
	}
	limit := hardLimit
	if payload := r.NC.MaxPayload(); payload > 0 {
		limit = min(limit, int(payload)*8/10)
	}
	return fit(done, min(bodyLimit, limit), limit, keep)
}

func (r *Researcher) keepAll(ctx context.Context, thread string, contents []string) ([]event.Blob, error) {
	blobs := make([]event.Blob, len(contents))
	var bulky []string
	var at []int // of them in contents
	for i, content := range contents {
		if content != "" {
			bulky, at = append(bulky, content), append(at, i)
		}
	}
	refs, err := r.Artifacts.PutAll(ctx, thread, bulky)
	if err != nil {
		return nil, err
	}
	for n, i := range at {
		blobs[i] = blob(refs[n])
	}
	return blobs, nil
}

func blob(ref artifact.Ref) event.Blob {
	return event.Blob{Ref: ref.Ref, SHA256: ref.SHA256, Size: ref.Size}
}

// completed turns a result into the event, with everything inline but the full texts of pages. It is pure.
func completed(j job, a answer) event.RunCompleted {
	result := a.result
	done := event.RunCompleted{
		Attempt: a.n, Cost: j.asked.Cost, Report: event.Blob{Text: clean(result.Report)}, Metadata: event.Blob{Text: clean(string(result.Metadata))},
		Pages: make([]event.Page, len(result.Pages)), Gaps: gaps(result.Gaps), Events: result.Counts.Events, Bytes: result.Counts.Bytes,
		Replayed: j.asked.Replay,
	}
	for i, p := range result.Pages {
		done.Pages[i] = page(j.thread, p)
	}
	if len(result.Usage) <= maxUsage {
		done.Usage = result.Usage
	}
	for _, w := range first(result.Warnings, maxNotes) {
		done.Warnings = append(done.Warnings, text.Truncate(clean(w), maxNote))
	}
	return done
}

// page is a cited page. One whose address is none of the web keeps its number, so that no marker moves, and is no source.
func page(thread string, p provider.Page) event.Page {
	out := event.Page{N: p.N, URL: clean(p.URL), Title: clean(p.Title), Summary: clean(p.Summary), PublishedAt: p.PublishedAt}
	for _, c := range p.Claims {
		out.Claims.Texts = append(out.Claims.Texts, clean(c))
	}
	canonical, err := text.CanonicalURL(p.URL)
	if err != nil {
		out.URL = text.Truncate(out.URL, maxNoURL)
		return out
	}
	out.URL = withoutUser(out.URL)
	out.Canonical, out.Source = canonical, notebook.SourceID(thread, canonical)
	return out
}

// withoutUser drops user and password, as the canonical form does: a link that is shown must not carry somebody's password, nor a
// name that looks like the host ("https://bank.example@elsewhere.example/").
func withoutUser(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.User == nil {
		return address
	}
	u.User = nil
	return u.String()
}

// gaps says what the provider itself found missing at its last look: earlier ones were worked on since.
func gaps(evaluations []provider.GapEvaluation) []string {
	if len(evaluations) == 0 {
		return nil
	}
	last := evaluations[len(evaluations)-1]
	var out []string
	add := func(s string) {
		if s = text.Truncate(strings.TrimSpace(clean(s)), maxGap); s != "" && len(out) < maxGaps {
			out = append(out, s)
		}
	}
	add(last.Description)
	for _, q := range last.Assessments {
		if q.Status == "answered" {
			continue
		}
		open := q.Question
		if q.Findings != "" {
			open += " (" + q.Findings + ")"
		}
		add(open)
	}
	for _, q := range last.NewQuestions {
		add(q)
	}
	return out
}

// fit brings the event under the limits: beyond soft the metadata, then the pages' claims, then the report are kept
// apart and referred to; beyond hard the event loses what the raw answer still has, and says so.
func fit(done event.RunCompleted, soft, hard int, keep keeper) (event.RunCompleted, error) {
	apart := []func() error{
		func() error { return keepText(&done.Metadata, keep) },
		func() error { return keepClaims(done.Pages, keep) },
		func() error { return keepText(&done.Report, keep) },
	}
	for _, step := range apart {
		if size(done) <= soft {
			return done, nil
		}
		if err := step(); err != nil {
			return done, err
		}
	}
	shorten := []struct {
		what string
		cut  func(*event.Page)
	}{
		{"summaries of cited pages were shortened", func(p *event.Page) { p.Summary = text.Truncate(p.Summary, shortText) }},
		{"summaries of cited pages were left out", func(p *event.Page) { p.Summary = "" }},
		{"titles of cited pages were shortened", func(p *event.Page) { p.Title = text.Truncate(p.Title, shortText) }},
	}
	const because = "The answer is very large: "
	for _, s := range shorten {
		if size(done) <= hard {
			return done, nil
		}
		for i := range done.Pages {
			s.cut(&done.Pages[i])
		}
		done.Warnings = append(done.Warnings, because+s.what+".")
	}
	all := len(done.Pages)
	for size(done) > hard && len(done.Pages) > 0 {
		done.Pages = done.Pages[:len(done.Pages)*3/4]
	}
	if len(done.Pages) < all {
		done.Warnings = append(done.Warnings, fmt.Sprintf("%sonly the first %d of %d cited pages are listed; markers of the others name no page.", because, len(done.Pages), all))
	}
	return done, nil
}

// keepText keeps one text apart.
func keepText(b *event.Blob, keep keeper) error {
	kept, err := keep([]string{b.Text})
	if err == nil {
		*b = kept[0]
	}
	return err
}

// keepClaims keeps the claims of each page apart.
func keepClaims(pages []event.Page, keep keeper) error {
	bodies := make([]string, len(pages))
	for i, p := range pages {
		if len(p.Claims.Texts) == 0 {
			continue
		}
		body, err := json.Marshal(p.Claims.Texts)
		if err != nil {
			return err
		}
		bodies[i] = string(body)
	}
	kept, err := keep(bodies)
	if err != nil {
		return err
	}
	for i := range pages {
		if bodies[i] != "" {
			pages[i].Claims = event.Claims{Blob: &kept[i]}
		}
	}
	return nil
}

// size is that of the event's data in JSON.
func size(done event.RunCompleted) int {
	body, err := json.Marshal(done)
	if err != nil {
		return 0 // the append will say why
	}
	return len(body)
}

// clean makes text fit for JSON and for any store.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func first[T any](list []T, n int) []T { return list[:min(len(list), n)] }
