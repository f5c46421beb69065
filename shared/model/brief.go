package model

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/factstream/factstream/shared/text"
)

// BriefTask asks for the prose of a thread.
type BriefTask struct {
	Question string         `json:"question"`
	Facts    []BriefFact    `json:"facts"`              // numbered, each number once; the most important first
	Disputes []BriefDispute `json:"disputes,omitempty"` // open contradictions between them
	Related  [][2]int       `json:"related,omitempty"`  // numbers of two facts that tell of the same thing, one with another detail
	Previous string         `json:"previous,omitempty"` // plain text of the last brief
}

// BriefFact is a fact to cite.
type BriefFact struct {
	N           int      `json:"n"`
	Ref         string   `json:"ref"` // the server's id; the model never sees it
	Statement   string   `json:"statement"`
	Disputed    bool     `json:"disputed,omitempty"` // side of an open contradiction, listed under Disputes or not
	Date        string   `json:"date,omitempty"`     // day of publication, or else of retrieval
	SourceTitle string   `json:"source_title,omitempty"`
	Tags        []string `json:"tags,omitempty"` // among them the headings that it stood under
}

// BriefDispute is an open contradiction.
type BriefDispute struct {
	N      int    `json:"n"`
	Ref    string `json:"ref"` // the server's id; the model never sees it
	A      int    `json:"a"`   // numbers of the facts
	B      int    `json:"b"`
	Reason string `json:"reason,omitempty"`
}

// BriefReply is the form of the answer.
type BriefReply struct {
	Findings      []BriefSentence        `json:"findings"`
	Disputed      []BriefDisputeSentence `json:"disputed"`
	Gaps          []BriefSentence        `json:"gaps"`
	Relationships []BriefSentence        `json:"relationships"`
}

// BriefSentence is a sentence with the numbers of the facts it rests on.
type BriefSentence struct {
	Text  string `json:"text"`
	Facts []int  `json:"facts"`
}

// BriefDisputeSentence is a sentence about one dispute.
type BriefDisputeSentence struct {
	Text    string `json:"text"`
	Dispute int    `json:"dispute"`
}

// Brief is a checked brief. Facts and disputes are named by the Ref of the task.
type Brief struct {
	Findings      []Cited    // each with at least one fact, none of them disputed
	Disputed      []Disputed // each about a dispute of the task
	Gaps          []Cited    // what is not known; facts are optional here, since a gap is what no fact covers
	Relationships []Cited    // as Findings
	Dropped       int        // sentences that were dropped, whatever the cause
	Outcome
}

// Cited is one sentence of 1 to 600 characters.
type Cited struct {
	Text  string
	Facts []string
}

// Disputed is one sentence about a contradiction.
type Disputed struct {
	Text    string
	Dispute string
}

// MaxBriefFacts is how many facts and MaxBriefDisputes how many disputes a brief can be written from: more do not fit into the
// context of a small model. The caller chooses which; what is over is counted as left out.
const (
	MaxBriefFacts    = 60
	MaxBriefDisputes = 15

	maxBriefStatement = 400
	maxBriefTitle     = 80
)

var briefSchema = literal(`{
	"type": "object", "required": ["findings", "disputed", "gaps", "relationships"],
	"properties": {
		"findings": {"type": "array", "items": {"type": "object", "required": ["text", "facts"],
			"properties": {"text": {"type": "string"}, "facts": {"type": "array", "items": {"type": "integer"}}}}},
		"disputed": {"type": "array", "items": {"type": "object", "required": ["text", "dispute"],
			"properties": {"text": {"type": "string"}, "dispute": {"type": "integer"}}}},
		"gaps": {"type": "array", "items": {"type": "object", "required": ["text", "facts"],
			"properties": {"text": {"type": "string"}, "facts": {"type": "array", "items": {"type": "integer"}}}}},
		"relationships": {"type": "array", "items": {"type": "object", "required": ["text", "facts"],
			"properties": {"text": {"type": "string"}, "facts": {"type": "array", "items": {"type": "integer"}}}}}
	}}`)

const briefRules = `Task: write a brief that answers the question from the numbered facts, and from nothing else.
- findings: the answer in single sentences, the most important first. facts: the numbers of the facts that the sentence rests on, at least one. Never rest a finding on a fact marked "disputed".
- disputed: one sentence for each dispute, saying what the two sides claim. dispute: its number.
- gaps: what the question asks and no fact answers, one sentence each. facts: the numbers of related facts, or an empty list.
- relationships: how facts depend on or explain each other, one sentence each, with the numbers of all facts concerned. Not on disputed facts.
Write in the language of the question, plainly, without headings, marks or opinion. Do not put numbers of facts into the text.
`

// Step is "brief".
func (BriefTask) Step() string { return "brief" }

// fit cuts the task to what a prompt shows, with at most n facts, and counts what is left out. A dispute with a side left out is
// left out too; the other side then stays disputed.
func (t BriefTask) fit(n int) (BriefTask, int) {
	left := max(len(t.Facts)-n, 0)
	disputed := t.disputed()
	t.Question = text.Truncate(fold(t.Question), maxQuestion)
	t.Previous = text.Truncate(fold(t.Previous), MaxPlanBrief)
	t.Facts = slices.Clone(first(t.Facts, n))
	shown := map[int]bool{}
	for i, f := range t.Facts {
		shown[f.N] = true
		t.Facts[i].Disputed = disputed[f.N]
	}
	var disputes []BriefDispute
	for _, d := range t.Disputes {
		if shown[d.A] && shown[d.B] && len(disputes) < MaxBriefDisputes {
			disputes = append(disputes, d)
		} else {
			left++
		}
	}
	t.Disputes = disputes
	t.Related = slices.DeleteFunc(slices.Clone(t.Related), func(p [2]int) bool { return !shown[p[0]] || !shown[p[1]] })
	return t, left
}

// disputed returns the numbers of the facts that may stand under disputed only.
func (t BriefTask) disputed() map[int]bool {
	out := map[int]bool{}
	for _, f := range t.Facts {
		if f.Disputed {
			out[f.N] = true
		}
	}
	for _, d := range t.Disputes {
		out[d.A], out[d.B] = true, true
	}
	return out
}

// Request renders the task.
func (t BriefTask) Request() Request {
	p := newPrompt(t)
	p.quote("The question:", []string{material(t.Question, maxQuestion)})
	disputed := t.disputed()
	var lines []string
	for _, f := range t.Facts {
		var notes []string
		if disputed[f.N] {
			notes = append(notes, "disputed")
		}
		if f.Date != "" {
			notes = append(notes, material(f.Date, 40))
		}
		if f.SourceTitle != "" {
			notes = append(notes, material(f.SourceTitle, maxBriefTitle))
		}
		line := fmt.Sprintf("fact %d: %s", f.N, material(f.Statement, maxBriefStatement))
		if len(notes) > 0 {
			line += " (" + strings.Join(notes, "; ") + ")"
		}
		lines = append(lines, line)
	}
	p.quote("The facts:", lines)
	lines = nil
	for _, d := range t.Disputes {
		lines = append(lines, fmt.Sprintf("dispute %d: fact %d against fact %d. %s", d.N, d.A, d.B, material(d.Reason, maxReason)))
	}
	p.quote("The disputes:", lines)
	if t.Previous != "" {
		p.quote("The last brief, to be brought up to date:", []string{material(t.Previous, MaxPlanBrief)})
	}
	return Request{Task: t, System: system(briefRules, briefSchema), Prompt: p.String(), Schema: briefSchema, MaxTokens: 2000}
}

// Check keeps of a reply the sentences that rest on the task's facts. It is pure.
func (t BriefTask) Check(reply BriefReply) Brief {
	c := briefCheck{facts: map[int]string{}, disputed: t.disputed(), said: map[string]bool{}, drops: Drops{}}
	for _, f := range t.Facts {
		c.facts[f.N] = f.Ref
	}
	var b Brief
	b.Findings = c.cited(reply.Findings, true)
	b.Disputed = c.disputes(reply.Disputed, t.Disputes)
	b.Relationships = c.cited(reply.Relationships, true)
	b.Gaps = c.cited(reply.Gaps, false)
	b.Dropped = c.dropped
	b.Drops = c.drops
	return b
}

type briefCheck struct {
	facts    map[int]string
	disputed map[int]bool
	said     map[string]bool
	drops    Drops
	dropped  int
}

func (c *briefCheck) drop(cause string) {
	c.drops.add(cause)
	c.dropped++
}

// say returns the text, and the form in which it is compared, if it may stand and was not said before in the brief.
func (c *briefCheck) say(text string) (line, form string, ok bool) {
	line, cause := sentence(text, maxStatement)
	if cause == "" {
		if form = same(line); c.said[form] {
			cause = DropDuplicate
		}
	}
	if cause != "" {
		c.drop(cause)
		return "", "", false
	}
	return line, form, true
}

func (c *briefCheck) cited(sentences []BriefSentence, needFact bool) []Cited {
	var out []Cited
	for _, s := range sentences {
		text, form, ok := c.say(s.Text)
		if !ok {
			continue
		}
		numbers := pick(s.Facts, func(n int) bool { _, ok := c.facts[n]; return ok }, c.drops, DropUnknownFact)
		if needFact && len(numbers) == 0 {
			c.drop(DropNoFact)
			continue
		}
		refs := make([]string, 0, len(numbers))
		for _, n := range numbers {
			if c.disputed[n] {
				refs = nil
				break
			}
			refs = append(refs, c.facts[n])
		}
		if len(numbers) > 0 && refs == nil {
			c.drop(DropDisputedFact)
			continue
		}
		c.said[form] = true
		out = append(out, Cited{Text: text, Facts: refs})
	}
	return out
}

func (c *briefCheck) disputes(sentences []BriefDisputeSentence, known []BriefDispute) []Disputed {
	refs := map[int]string{}
	for _, d := range known {
		refs[d.N] = d.Ref
	}
	var out []Disputed
	for _, s := range sentences {
		text, form, ok := c.say(s.Text)
		if !ok {
			continue
		}
		ref, ok := refs[s.Dispute]
		if !ok {
			c.drop(DropUnknownDispute)
			continue
		}
		c.said[form] = true
		out = append(out, Disputed{Text: text, Dispute: ref})
	}
	return out
}

// WriteBrief asks for a brief. If the task is too long for the model's context, it is written from the first half of the facts and
// without the previous brief. A task without facts gives an empty one, without a call.
func WriteBrief(ctx context.Context, call Call, task BriefTask) (Brief, error) {
	if len(task.Facts) == 0 {
		return Brief{Outcome: Outcome{Drops: Drops{}}}, nil
	}
	task, left := task.fit(MaxBriefFacts)
	answered, reply, out, err := ask[BriefTask, BriefReply](ctx, call, task)
	if tooMuch(err) && len(task.Facts) > 1 {
		task.Previous = ""
		half, more := task.fit((len(task.Facts) + 1) / 2)
		left += more
		answered, reply, out, err = ask[BriefTask, BriefReply](ctx, call.part("half"), half)
	}
	if err != nil {
		return Brief{Outcome: out}, err
	}
	b := answered.Check(reply)
	out.Drops = b.Drops
	if left > 0 {
		out.Drops[DropLeftOut] += left
	}
	b.Outcome = out
	return b, nil
}
