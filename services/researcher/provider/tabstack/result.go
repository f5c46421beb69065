package tabstack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/factstream/factstream/services/researcher/provider"
	"github.com/factstream/factstream/shared/text"
)

// result reads what a complete event holds beside its report. Nothing in it is a reason to lose the report: a field of
// an unexpected kind is left out, and said in a warning where something is missing because of it.
func result(report string, fields map[string]json.RawMessage) provider.Result {
	r := provider.Result{Report: report, Usage: present(fields["usage"])}
	raw := present(fields["metadata"])
	if raw == nil {
		r.Warnings = append(r.Warnings, "The report came without metadata, so it has no cited pages.")
		return r
	}
	r.Metadata = raw
	metadata, ok := object(raw)
	if !ok {
		r.Warnings = append(r.Warnings, "The report's metadata is not an object, so it has no cited pages.")
		return r
	}
	if r.Usage == nil {
		r.Usage = present(metadata["usage"])
	}
	var warning string
	if r.Pages, warning = pages(metadata["citedPages"]); warning != "" {
		r.Warnings = append(r.Warnings, warning)
	}
	r.Gaps = gaps(metadata["gapEvaluations"])
	r.Counts = provider.Counts{PagesAnalyzed: integer(metadata["totalPagesAnalyzed"]), PagesCited: len(r.Pages)}
	for _, round := range list(metadata["executedQueries"]) {
		r.Counts.Queries += len(list(round))
	}
	return r
}

func pages(raw json.RawMessage) ([]provider.Page, string) {
	all := list(raw)
	if all == nil && present(raw) != nil {
		return nil, "The cited pages are not a list and were left out; the report's markers name no pages."
	}
	var out []provider.Page
	var broken []string
	for i, one := range all {
		p, ok := page(one)
		p.N = i + 1
		if !ok {
			broken = append(broken, strconv.Itoa(p.N))
		}
		out = append(out, p)
	}
	if broken != nil {
		return out, fmt.Sprintf("Cited pages without a URL that can be read: %s.", strings.Join(broken, ", "))
	}
	return out, ""
}

// page reads one cited page; ok is false when it has no URL.
func page(raw json.RawMessage) (p provider.Page, ok bool) {
	fields, isObject := object(raw)
	if !isObject {
		return provider.Page{Raw: present(raw)}, false
	}
	p = provider.Page{
		ID: str(fields["id"]), URL: strings.TrimSpace(str(fields["url"])), Title: str(fields["title"]), Summary: str(fields["summary"]),
		Claims: strs(fields["claims"]), Relevance: str(fields["relevance"]), Reliability: str(fields["reliability"]),
		Depth: integer(fields["depth"]), ParentURL: str(fields["parentUrl"]), FullText: str(fields["fullText"]),
		Raw: withoutFullText(raw, fields),
	}
	published(&p, fields)
	return p, p.URL != ""
}

// publishedNames are the names under which a page's date comes, the surest first.
var publishedNames = []string{"publishedAt", "publishedDate", "datePublished", "published"}

// published takes the first date that can be read; none is invented.
func published(p *provider.Page, fields map[string]json.RawMessage) {
	for _, name := range publishedNames {
		raw := present(fields[name])
		if raw == nil {
			continue
		}
		said := strings.TrimSpace(str(raw))
		if said == "" && raw[0] != '"' {
			said = string(raw) // a number: seconds or milliseconds since 1970
		}
		if p.PublishedRaw == "" {
			p.PublishedRaw = said
		}
		if at, precision, ok := text.ParseDate(said); ok {
			at = at.UTC()
			p.PublishedAt, p.PublishedPrecision, p.PublishedRaw = &at, precision, said
			return
		}
	}
}

func gaps(raw json.RawMessage) []provider.GapEvaluation {
	var out []provider.GapEvaluation
	for _, one := range list(raw) {
		fields, ok := object(one)
		if !ok {
			continue
		}
		g := provider.GapEvaluation{
			Coverage: str(fields["researchCoverage"]), ShouldContinue: string(fields["shouldContinueResearch"]) == "true",
			Description: str(fields["gapDescription"]), SearchQueries: strs(fields["searchQueries"]), NewQuestions: strs(fields["newResearchQuestions"]),
		}
		for _, a := range list(fields["questionAssessments"]) {
			if of, ok := object(a); ok {
				g.Assessments = append(g.Assessments, provider.QuestionAssessment{
					Question: str(of["question"]), Status: str(of["status"]), Findings: str(of["findings"])})
			}
		}
		out = append(out, g)
	}
	return out
}

// withoutFullText returns the page as it came, less its full text, which is kept apart since it may be long.
func withoutFullText(raw json.RawMessage, fields map[string]json.RawMessage) json.RawMessage {
	if _, has := fields["fullText"]; !has {
		return raw
	}
	rest := make(map[string]json.RawMessage, len(fields))
	for k, v := range fields {
		if k != "fullText" {
			rest[k] = v
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(rest) != nil { // parts of valid JSON are valid
		return nil
	}
	return bytes.TrimSpace(b.Bytes())
}

// The readers below take a field as the kind that is wanted and give its zero value for anything else, so that one odd
// field costs that field only.

func object(raw json.RawMessage) (map[string]json.RawMessage, bool) {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil || m == nil {
		return nil, false
	}
	return m, true
}

func list(raw json.RawMessage) []json.RawMessage {
	var l []json.RawMessage
	if json.Unmarshal(raw, &l) != nil {
		return nil
	}
	return l
}

func str(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

func strs(raw json.RawMessage) []string {
	var out []string
	for _, one := range list(raw) {
		if s := str(one); strings.TrimSpace(s) != "" {
			out = append(out, s)
		}
	}
	return out
}

func integer(raw json.RawMessage) int {
	var n float64
	if json.Unmarshal(raw, &n) != nil || n < 0 || n > 1<<31 {
		return 0
	}
	return int(n)
}

// present returns raw, or nil for a field that is absent or null.
func present(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return raw
}
