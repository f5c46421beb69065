package model

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
)

// DistillTask asks for the facts in one chunk of a report.
type DistillTask struct {
	Question  string     `json:"question"`  // the thread's or the run's question
	Sentences []Numbered `json:"sentences"` // of the report, numbered as the caller likes, each number once
	Pages     []Page     `json:"pages"`     // the cited pages; N is the citation number in the report
	MaxFacts  int        `json:"max_facts"` // at least 1
}

// Numbered is one sentence of a report. The text of a heading begins with as many "#" as it has levels, that of the first sentence of an
// item of a list with as many "- " as it stands in items.
type Numbered struct {
	N       int    `json:"n"`
	Text    string `json:"text"`
	Markers []int  `json:"markers,omitempty"` // citation numbers in it
	Depth   int    `json:"depth,omitempty"`   // how many items of lists it stands in; 0 outside lists
}

// Page is a cited page as the provider described it. All of it is outside text.
type Page struct {
	N       int      `json:"n"`
	Title   string   `json:"title,omitempty"`
	Summary string   `json:"summary,omitempty"`
	Claims  []string `json:"claims,omitempty"`
}

// DistillReply is the form of the answer.
type DistillReply struct {
	Facts []DistillFact `json:"facts"`
}

// DistillFact is one fact as a model writes it.
type DistillFact struct {
	Statement  string   `json:"statement"`
	Confidence float64  `json:"confidence"`
	Tags       []string `json:"tags"`
	Sentences  []int    `json:"sentences"`
	Page       *int     `json:"page"` // null when no single page is clearly responsible
}

// Fact is a checked fact.
type Fact struct {
	Statement  string   // one line, 1 to 600 characters
	Confidence float64  // 0..1
	Tags       []string // at most 5, lower case, each once
	Sentences  []int    // numbers from the task, at least one
	Page       int      // a page number from the task, 0 for none
}

// Distilled is what one chunk gave, the surest facts first and those of equal confidence in the order of the reply.
type Distilled struct {
	Facts []Fact
	Outcome
}

const (
	maxQuestion  = 2000 // characters of a question that a prompt shows
	maxStatement = 600  // characters of a statement
	maxTags      = 5
	maxTag       = 40 // characters of a tag

	maxPageTitle   = 160
	maxPageSummary = 400
	maxPageClaims  = 3
	maxPageClaim   = 200
	maxPages       = 6000 // characters of all pages of a prompt together; those that the sentences cite come first
)

var distillSchema = literal(`{
	"type": "object", "required": ["facts"],
	"properties": {"facts": {"type": "array", "items": {
		"type": "object", "required": ["statement", "confidence", "tags", "sentences", "page"],
		"properties": {
			"statement": {"type": "string"},
			"sentences": {"type": "array", "items": {"type": "integer"}},
			"page": {"type": ["integer", "null"]},
			"tags": {"type": "array", "items": {"type": "string"}},
			"confidence": {"type": "number"}
		}}}}}`)

const distillRules = `Task: list the facts that the numbered sentences state and that help to answer the question.
- statement: one claim that stands alone. Name the subject instead of "it" or "they"; keep numbers, units, names and dates as they are; no opinion, no advice, nothing that the sentences do not say. Write it in the language of the question.
- sentences: the numbers of the sentences it comes from. Lines that begin with # are headings, those that begin with - are items of lists (one - for each list around them): they say what the sentences behind them are about. A heading is no fact.
- page: the number of the one page that is clearly responsible for it (a mark like [3] in a sentence cites page 3); null when several are or none is.
- tags: one to five short words for its subject.
- confidence: from 0 to 1, how surely the sentences state it.
`

// Step is "distill".
func (DistillTask) Step() string { return "distill" }

// Request renders the task.
func (t DistillTask) Request() Request {
	p := newPrompt(t)
	p.say("Give at most %s.", plural(t.MaxFacts, "fact"))
	p.quote("The question:", []string{material(t.Question, maxQuestion)})
	p.quote("The cited pages:", t.pageLines())
	lines := make([]string, len(t.Sentences))
	for i, s := range t.Sentences {
		lines[i] = fmt.Sprintf("(%d) %s", s.N, material(s.Text, runes(s.Text)))
	}
	p.quote("The sentences:", lines)
	return Request{Task: t, System: system(distillRules, distillSchema), Prompt: p.String(), Schema: distillSchema, MaxTokens: 300 + 120*t.MaxFacts}
}

// pageLines describes the pages, those that the sentences cite in full and first, until their share of the prompt is used up.
func (t DistillTask) pageLines() []string {
	cited := map[int]bool{}
	for _, s := range t.Sentences {
		for _, n := range s.Markers {
			cited[n] = true
		}
	}
	pages := slices.Clone(t.Pages)
	slices.SortStableFunc(pages, func(a, b Page) int {
		if cited[a.N] != cited[b.N] {
			if cited[a.N] {
				return -1
			}
			return 1
		}
		return 0
	})
	var lines []string
	left := maxPages
	for _, page := range pages {
		line := fmt.Sprintf("page %d: %s", page.N, material(page.Title, maxPageTitle))
		if cited[page.N] {
			if page.Summary != "" {
				line += " | summary: " + material(page.Summary, maxPageSummary)
			}
			for _, claim := range page.Claims[:min(len(page.Claims), maxPageClaims)] {
				line += " | claim: " + material(claim, maxPageClaim)
			}
		}
		if left -= runes(line); left < 0 {
			break
		}
		lines = append(lines, line)
	}
	return lines
}

// Check keeps of a reply what the task allows, at most MaxFacts by confidence. It is pure.
func (t DistillTask) Check(reply DistillReply) ([]Fact, Drops) {
	drops := Drops{}
	sentences, pages := map[int]bool{}, map[int]bool{}
	for _, s := range t.Sentences {
		sentences[s.N] = true
	}
	for _, p := range t.Pages {
		pages[p.N] = true
	}
	said := map[string]bool{}
	var facts []Fact
	for _, f := range reply.Facts {
		statement, cause := sentence(f.Statement, maxStatement)
		if cause != "" {
			drops.add(cause)
			continue
		}
		canonical := same(statement)
		if said[canonical] {
			drops.add(DropDuplicate)
			continue
		}
		from := pick(f.Sentences, func(n int) bool { return sentences[n] }, drops, DropUnknownSentence)
		if len(from) == 0 {
			drops.add(DropNoSentence)
			continue
		}
		said[canonical] = true
		slices.Sort(from)
		fact := Fact{Statement: statement, Confidence: share(f.Confidence, drops), Tags: Tags(f.Tags, drops), Sentences: from}
		if f.Page != nil {
			if pages[*f.Page] {
				fact.Page = *f.Page
			} else {
				drops.add(DropUnknownPage)
			}
		}
		facts = append(facts, fact)
	}
	return surest(facts, t.MaxFacts, drops), drops
}

// surest orders facts by confidence and keeps the first n.
func surest(facts []Fact, n int, drops Drops) []Fact {
	slices.SortStableFunc(facts, func(a, b Fact) int { return cmp.Compare(b.Confidence, a.Confidence) })
	for len(facts) > n {
		facts = facts[:len(facts)-1]
		drops.add(DropOverLimit)
	}
	return facts
}

// Tags returns the usable ones of tags: lower case, at most 40 characters, each once, at most 5. The others are counted in drops.
func Tags(tags []string, drops Drops) []string {
	var out []string
	for _, tag := range tags {
		tag = strings.ToLower(strings.TrimPrefix(fold(tag), "#"))
		if !hasWord(tag) || runes(tag) > maxTag || hasAddress(tag) || slices.Contains(out, tag) || len(out) == maxTags {
			drops.add(DropTag)
			continue
		}
		out = append(out, tag)
	}
	return out
}

// Distill asks for the facts of one chunk. A chunk that is too long for the model's context (other scripts take up to four times the
// tokens of English) is halved until it fits. A task without sentences gives none, without a call.
func Distill(ctx context.Context, call Call, task DistillTask) (Distilled, error) {
	if len(task.Sentences) == 0 {
		return Distilled{Outcome: Outcome{Drops: Drops{}}}, nil
	}
	task.MaxFacts = max(task.MaxFacts, 1)
	answered, reply, out, err := ask[DistillTask, DistillReply](ctx, call, task)
	if tooMuch(err) && len(task.Sentences) > 1 {
		return distillHalves(ctx, call, task)
	}
	if err != nil {
		return Distilled{Outcome: out}, err
	}
	facts, drops := answered.Check(reply)
	out.Drops = drops
	return Distilled{Facts: facts, Outcome: out}, nil
}

func distillHalves(ctx context.Context, call Call, task DistillTask) (Distilled, error) {
	firstHalf, secondHalf := task, task
	firstHalf.Sentences, secondHalf.Sentences = halves(task.Sentences)
	a, err := Distill(ctx, call.part("first"), firstHalf)
	if err != nil {
		return a, err
	}
	b, err := Distill(ctx, call.part("second"), secondHalf)
	if err != nil {
		return b, err
	}
	both := Distilled{Facts: a.Facts, Outcome: a.with(b.Outcome)}
	said := map[string]bool{}
	for _, f := range a.Facts {
		said[same(f.Statement)] = true
	}
	for _, f := range b.Facts {
		if said[same(f.Statement)] {
			both.Drops.add(DropDuplicate)
			continue
		}
		both.Facts = append(both.Facts, f)
	}
	both.Facts = surest(both.Facts, task.MaxFacts, both.Drops)
	return both, nil
}
