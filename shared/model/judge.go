package model

import (
	"context"
	"fmt"
	"strings"

	"github.com/factstream/factstream/shared/text"
)

// Relation is a judge's verdict about two statements.
type Relation string

// The relations. Distinct is everything that is neither of the others, and what to say when in doubt.
const (
	Duplicate     Relation = "duplicate"     // the newer statement adds nothing to the elder
	Contradiction Relation = "contradiction" // both cannot be true of the same thing at the same time
	Distinct      Relation = "distinct"      // all else: forecast against observation, another year, another source's estimate
)

// JudgeTask asks how a newer statement stands to an elder one.
type JudgeTask struct {
	Elder Statement `json:"elder"`
	Newer Statement `json:"newer"`
}

// Statement is one side of a pair.
type Statement struct {
	Text        string   `json:"text"`
	Date        string   `json:"date,omitempty"` // day of publication, or else of retrieval: 2026-03-05
	SourceTitle string   `json:"source_title,omitempty"`
	Tags        []string `json:"tags,omitempty"`
}

// JudgeReply is the form of the answer. The reason stands first in the schema: a small model that writes it first decides better.
type JudgeReply struct {
	Reason   string `json:"reason"`
	Relation string `json:"relation"`
	Related  bool   `json:"related,omitempty"` // of distinct statements: they tell of the same thing, and one adds a detail to the other
}

// Verdict is a checked verdict.
type Verdict struct {
	Relation Relation
	Reason   string // one line of at most 300 characters, or ""
	Related  bool   // distinct, and yet of the same thing: who reads the one is helped by the other
	Outcome
}

const maxSourceTitle = 160

var judgeSchema = literal(`{
	"type": "object", "required": ["reason", "relation"],
	"properties": {
		"reason": {"type": "string"},
		"relation": {"type": "string", "enum": ["duplicate", "contradiction", "distinct"]},
		"related": {"type": "boolean"}
	}}`)

const judgeRules = `Task: say how statement B (newer) stands to statement A (elder).
- duplicate: B says the same and adds nothing that A does not say.
- contradiction: both are about the same thing at the same time, and both cannot be true.
- distinct: everything else. Another subject, another year, another measure, a forecast against an observation, another source's estimate, or a detail that only one of them gives.
First write the reason, in one short sentence; then the relation. When in doubt: distinct.
Of distinct statements say related: true if both tell of the same thing, can both be true, and one only adds a detail to the other; else false.
`

// Step is "judge".
func (JudgeTask) Step() string { return "judge" }

// Request renders the task.
func (t JudgeTask) Request() Request {
	p := newPrompt(t)
	p.quote("Statement A (elder):", t.Elder.lines())
	p.quote("Statement B (newer):", t.Newer.lines())
	return Request{Task: t, System: system(judgeRules, judgeSchema), Prompt: p.String(), Schema: judgeSchema, MaxTokens: 300}
}

func (s Statement) lines() []string {
	lines := []string{material(s.Text, maxStatement)}
	if s.SourceTitle != "" {
		lines = append(lines, "source: "+material(s.SourceTitle, maxSourceTitle))
	}
	if s.Date != "" {
		lines = append(lines, "date of the source: "+material(s.Date, 40))
	}
	if len(s.Tags) > 0 {
		lines = append(lines, "tags: "+material(strings.Join(s.Tags, ", "), 200))
	}
	return lines
}

// Check reads a verdict. It is pure. A duplicate that plainly is none becomes distinct. A relation that is none of the three is an ErrSchema.
func (t JudgeTask) Check(reply JudgeReply) (Verdict, error) {
	drops := Drops{}
	v := Verdict{Relation: Relation(reply.Relation), Reason: reason(reply.Reason, drops), Outcome: Outcome{Drops: drops}}
	v.Related = v.Relation == Distinct && reply.Related
	t.guard(&v)
	switch v.Relation {
	case Duplicate, Contradiction, Distinct:
		return v, nil
	}
	return Verdict{}, fmt.Errorf("%w: relation %q", ErrSchema, text.Truncate(fold(reply.Relation), 40))
}

// Judge asks about one pair.
func Judge(ctx context.Context, call Call, task JudgeTask) (Verdict, error) {
	answered, reply, out, err := ask[JudgeTask, JudgeReply](ctx, call, task)
	if err != nil {
		return Verdict{Outcome: out}, err
	}
	v, err := answered.Check(reply)
	if err != nil {
		return Verdict{Outcome: out}, err
	}
	out.Drops = v.Drops
	v.Outcome = out
	return v, nil
}
