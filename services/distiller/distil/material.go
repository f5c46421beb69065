package distil

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/text"
)

// chunkSize is how many characters of a report one question to a model holds at most.
const chunkSize = 12_000

// material is a report as the model sees it, and what its numbers stand for. It is pure data.
type material struct {
	report     string
	sentences  []text.Sentence // sentence n is sentences[n-1]; what is longer than a chunk is in pieces
	places     []place         // of sentences
	chunks     [][]model.Numbered
	pages      []model.Page          // those that can be cited
	sources    map[int]*event.Source // by page number
	figures    map[string]bool       // the numbers of the report, see known
	unresolved int                   // markers of sentences that name no page that can be cited
}

// read numbers the sentences and pages of a report. All sentences are in a chunk, each in one; a chunk after the first begins, besides,
// with what its first sentence stands under in the chunks before (see material.over).
func read(report string, pages []event.Page) material {
	m := material{report: report, sources: sources(pages), figures: known(figures(report))}
	for _, p := range pages {
		if m.sources[p.N] != nil {
			m.pages = append(m.pages, model.Page{N: p.N, Title: p.Title, Summary: p.Summary, Claims: p.Claims.Texts})
		}
	}
	whole := text.Sentences(report)
	for _, s := range whole {
		for _, n := range s.Markers {
			if m.sources[n] == nil {
				m.unresolved++
			}
		}
	}
	outline := outline{report: report}
	for _, chunk := range text.Chunks(whole, chunkSize) {
		var numbered []model.Numbered
		for i, s := range chunk {
			m.sentences, m.places = append(m.sentences, s), append(m.places, outline.place(s))
			if i == 0 {
				numbered = m.over(len(m.sentences))
			}
			numbered = append(numbered, m.numbered(len(m.sentences)))
		}
		m.chunks = append(m.chunks, numbered)
	}
	return m
}

// numbered is sentence n as the model reads it. What says what other sentences are about has the marks of Markdown: "## " before a heading of
// the second level, "- - " where an item of a list within a list begins. (A model that is shown one line a sentence sees no indentation.)
func (m material) numbered(n int) model.Numbered {
	s, at := m.sentences[n-1], m.places[n-1]
	out := model.Numbered{N: n, Text: s.Text, Markers: s.Markers, Depth: at.depth}
	switch {
	case at.level > 0:
		out.Text = strings.Repeat("#", at.level) + " " + s.Text
	case at.begins:
		out.Text = strings.Repeat("- ", min(at.depth, maxMarks)) + s.Text
	}
	return out
}

// over gives the sentences before n that n stands under, in their order: its headings, and the items of lists around it that cite nothing.
// What cites something states a fact where it stands, and would state it twice.
func (m material) over(n int) []model.Numbered {
	var out []model.Numbered
	first := m.places[n-1]
	depth, level, inList := first.depth, first.level, first.depth > 1
	room := maxOver
	for k := n - 1; k > 0; k-- {
		at := m.places[k-1]
		switch {
		case at.level > 0 && (level == 0 || at.level < level) && m.sentences[k-1].Kind != text.TableHead:
			level, inList = at.level, false
		case inList && at.begins && at.depth < depth:
			if depth = at.depth; len(m.sentences[k-1].Markers) > 0 {
				continue
			}
		default:
			inList = inList && at.depth > 0
			continue
		}
		over := m.numbered(k)
		if room -= utf8.RuneCountInString(over.Text); room < 0 {
			break
		}
		out = append(out, over)
		if level == 1 {
			break
		}
	}
	slices.Reverse(out)
	return out
}

// maxOver is how many characters of what its first sentence stands under a chunk begins with at most: a list may be nested without end.
const maxOver = 2_000

// maxMarks is how many marks an item is shown with at most; Depth has the number.
const maxMarks = 8

func heading(s text.Sentence) bool { return s.Kind == text.Heading || s.Kind == text.TableHead }

// sources gives the source of each page that has one. Pages that differ only in how their URL is written are one source: shown as it
// was first cited, with the first title and date that any of them has.
func sources(pages []event.Page) map[int]*event.Source {
	byNumber, byID := map[int]*event.Source{}, map[string]*event.Source{}
	for _, p := range pages {
		if p.Source == "" || p.N < 1 {
			continue
		}
		source := byID[p.Source]
		if source == nil {
			source = &event.Source{ID: p.Source, URL: p.URL, Canonical: p.Canonical, Site: text.Site(p.URL)}
			byID[p.Source] = source
		}
		if source.Title == "" {
			source.Title = text.Truncate(text.Normalise(p.Title), maxTitle)
		}
		if source.PublishedAt == nil {
			source.PublishedAt = p.PublishedAt
		}
		byNumber[p.N] = source
	}
	return byNumber
}

const maxTitle = 300 // characters of a source's title

// source is the source of a fact that names page (0: none) and these sentences. The report's own marks have the last word: a page
// that none of the sentences cites is not taken if they cite others, and if they all cite one source, that is the fact's.
func (m material) source(page int, numbers []int) (source *event.Source, contradicted bool) {
	var cited []*event.Source
	for _, n := range numbers {
		for _, marker := range m.sentences[n-1].Markers {
			if s := m.sources[marker]; s != nil && !slices.Contains(cited, s) {
				cited = append(cited, s)
			}
		}
	}
	named := m.sources[page]
	contradicted = named != nil && len(cited) > 0 && !slices.Contains(cited, named)
	switch {
	case named != nil && !contradicted:
		return named, false
	case len(cited) == 1:
		return cited[0], contradicted
	}
	return nil, contradicted
}

// excerpt is the literal part of the report that sentences name: all of them if they follow one another, else those that follow one
// another, cite the fact's source (nil: none) and share the most words with the statement. What says of which thing a list tells may share
// more words with the statement than the item that states it.
func (m material) excerpt(statement string, numbers []int, source *event.Source) *event.Excerpt {
	words := map[string]bool{}
	for _, w := range text.Words(statement) {
		words[w] = true
	}
	var best *event.Excerpt
	most := -1
	for _, s := range m.spans(numbers) {
		shared := map[string]bool{}
		for _, w := range text.Words(m.report[s.Start:s.End]) {
			if words[w] {
				shared[w] = true
			}
		}
		score := len(shared)
		if source != nil && slices.ContainsFunc(s.Markers, func(n int) bool { return m.sources[n] == source }) {
			score += len(words)
		}
		if score > most {
			most, best = score, &event.Excerpt{Start: s.Start, End: s.End, Text: m.report[s.Start:s.End]}
		}
	}
	return best
}

// maxExcerpt is how many characters an excerpt may have: events hold them in full.
const maxExcerpt = 2000

// spans joins the sentences that follow one another, as long as they fit into an excerpt, with the marks of all; a sentence that does not
// fit is in pieces.
func (m material) spans(numbers []int) []text.Sentence {
	sorted := slices.Compact(slices.Sorted(slices.Values(numbers)))
	var spans []text.Sentence
	joined := 0 // number of the last sentence of the last span
	for _, n := range sorted {
		s := m.sentences[n-1]
		if last := len(spans) - 1; last >= 0 && joined == n-1 && utf8.RuneCountInString(m.report[spans[last].Start:s.End]) <= maxExcerpt {
			spans[last].End = s.End
			spans[last].Markers = slices.Concat(spans[last].Markers, s.Markers)
		} else {
			for _, pieces := range text.Chunks([]text.Sentence{s}, maxExcerpt) {
				spans = append(spans, pieces...)
			}
		}
		joined = n
	}
	return spans
}
