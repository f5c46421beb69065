package model

import (
	"context"
	"fmt"
	"strings"

	"github.com/factstream/factstream/shared/text"
)

// CoverageTask asks which topic each fact belongs to.
type CoverageTask struct {
	Question string         `json:"question"`
	Topics   []Topic        `json:"topics,omitempty"` // those that exist, numbered, each number once
	Facts    []CoverageFact `json:"facts"`            // those to assign, numbered, each number once
}

// Topic is a topic that exists.
type Topic struct {
	N    int    `json:"n"`
	Ref  string `json:"ref"` // the server's id; the model never sees it
	Name string `json:"name"`
}

// CoverageFact is a fact to assign.
type CoverageFact struct {
	N         int      `json:"n"`
	Ref       string   `json:"ref"` // the server's id; the model never sees it
	Statement string   `json:"statement"`
	Tags      []string `json:"tags,omitempty"`
}

// CoverageReply is the form of the answer.
type CoverageReply struct {
	Assignments []TopicAssignment `json:"assignments"`
}

// TopicAssignment puts a fact to a topic that exists, or to a new one by name; exactly one of the two is not null.
type TopicAssignment struct {
	Fact     int     `json:"fact"`
	Topic    *int    `json:"topic"`
	NewTopic *string `json:"new_topic"`
}

// Coverage is a checked map of facts to topics: at most one assignment per fact, in the order of the reply.
type Coverage struct {
	Assignments []Assignment
	Outcome
}

// Assignment names a fact and its topic by their Ref; Topic is "" for a new topic, which NewTopic names. Equal new topics have
// equal names.
type Assignment struct {
	Fact     string
	Topic    string
	NewTopic string
}

// MaxCoverageFacts is how many facts one call can assign, MaxCoverageTopics how many topics it can choose from; what is over is
// counted as left out.
const (
	MaxCoverageFacts  = 60
	MaxCoverageTopics = 40

	maxCoverageStatement = 250
	maxTopic             = 60 // characters of a topic's name
)

var coverageSchema = literal(`{
	"type": "object", "required": ["assignments"],
	"properties": {"assignments": {"type": "array", "items": {
		"type": "object", "required": ["fact", "topic", "new_topic"],
		"properties": {
			"fact": {"type": "integer"},
			"topic": {"type": ["integer", "null"]},
			"new_topic": {"type": ["string", "null"]}
		}}}}}`)

const coverageRules = `Task: put each numbered fact under exactly one topic.
- topic: the number of an existing topic, whenever one fits; then new_topic is null.
- new_topic: only when no existing topic fits: a short name for a new one, in the language of the question; then topic is null. Use few new topics, each for several facts if possible, and write the same name in the same way.
`

// Step is "coverage".
func (CoverageTask) Step() string { return "coverage" }

// fit cuts the task to what a prompt shows, and counts what is left out.
func (t CoverageTask) fit() (CoverageTask, int) {
	left := max(len(t.Facts)-MaxCoverageFacts, 0) + max(len(t.Topics)-MaxCoverageTopics, 0)
	t.Question = text.Truncate(fold(t.Question), maxQuestion)
	t.Facts = first(t.Facts, MaxCoverageFacts)
	t.Topics = first(t.Topics, MaxCoverageTopics)
	return t, left
}

// Request renders the task.
func (t CoverageTask) Request() Request {
	p := newPrompt(t)
	p.quote("The question:", []string{material(t.Question, maxQuestion)})
	var lines []string
	for _, topic := range t.Topics {
		lines = append(lines, fmt.Sprintf("topic %d: %s", topic.N, material(topic.Name, maxTopic)))
	}
	if len(lines) == 0 {
		p.say("\nThere are no topics yet.")
	}
	p.quote("The existing topics:", lines)
	lines = nil
	for _, f := range t.Facts {
		line := fmt.Sprintf("fact %d: %s", f.N, material(f.Statement, maxCoverageStatement))
		if len(f.Tags) > 0 {
			line += " (" + material(strings.Join(f.Tags, ", "), 120) + ")"
		}
		lines = append(lines, line)
	}
	p.quote("The facts:", lines)
	return Request{Task: t, System: system(coverageRules, coverageSchema), Prompt: p.String(), Schema: coverageSchema, MaxTokens: 200 + 35*len(t.Facts)}
}

// Check keeps of a reply one assignment per fact. A topic that exists goes before a new one, also when the new one has its name. It
// is pure.
func (t CoverageTask) Check(reply CoverageReply) ([]Assignment, Drops) {
	drops := Drops{}
	facts, topics, named := map[int]string{}, map[int]string{}, map[string]string{}
	for _, f := range t.Facts {
		facts[f.N] = f.Ref
	}
	for _, topic := range t.Topics {
		topics[topic.N] = topic.Ref
		named[same(topic.Name)] = topic.Ref
	}
	written := map[string]string{} // new topics as first written
	done := map[int]bool{}
	var out []Assignment
	for _, a := range reply.Assignments {
		ref, ok := facts[a.Fact]
		if !ok {
			drops.add(DropUnknownFact)
			continue
		}
		if done[a.Fact] {
			drops.add(DropDuplicate)
			continue
		}
		if a.Topic != nil {
			if topic, ok := topics[*a.Topic]; ok {
				done[a.Fact] = true
				out = append(out, Assignment{Fact: ref, Topic: topic})
				continue
			}
			if a.NewTopic == nil {
				drops.add(DropUnknownTopic)
				continue
			}
		}
		if a.NewTopic == nil {
			continue // counted as unassigned below
		}
		name, cause := sentence(*a.NewTopic, maxTopic)
		if cause != "" {
			drops.add(cause)
			continue
		}
		done[a.Fact] = true
		if topic, ok := named[same(name)]; ok {
			out = append(out, Assignment{Fact: ref, Topic: topic})
			continue
		}
		if first, ok := written[same(name)]; ok {
			name = first
		}
		written[same(name)] = name
		out = append(out, Assignment{Fact: ref, NewTopic: name})
	}
	for _, f := range t.Facts {
		if !done[f.N] {
			drops.add(DropUnassigned)
		}
	}
	return out, drops
}

// MapCoverage asks for the topics of facts. If the task is too long for the model's context, its facts are assigned in two halves. A
// task without facts gives no assignments, without a call.
func MapCoverage(ctx context.Context, call Call, task CoverageTask) (Coverage, error) {
	if len(task.Facts) == 0 {
		return Coverage{Outcome: Outcome{Drops: Drops{}}}, nil
	}
	task, left := task.fit()
	answered, reply, out, err := ask[CoverageTask, CoverageReply](ctx, call, task)
	var c Coverage
	switch {
	case tooMuch(err) && len(task.Facts) > 1:
		if c, err = coverHalves(ctx, call, task); err != nil {
			return c, err
		}
	case err != nil:
		return Coverage{Outcome: out}, err
	default:
		c.Assignments, out.Drops = answered.Check(reply)
		c.Outcome = out
	}
	if left > 0 {
		c.Drops[DropLeftOut] += left
	}
	return c, nil
}

// coverHalves assigns the facts in two halves; a new topic of the second that the first named as well is the same one.
func coverHalves(ctx context.Context, call Call, task CoverageTask) (Coverage, error) {
	firstHalf, secondHalf := task, task
	firstHalf.Facts, secondHalf.Facts = halves(task.Facts)
	a, err := MapCoverage(ctx, call.part("first"), firstHalf)
	if err != nil {
		return a, err
	}
	b, err := MapCoverage(ctx, call.part("second"), secondHalf)
	if err != nil {
		return b, err
	}
	written := map[string]string{}
	for _, x := range a.Assignments {
		written[same(x.NewTopic)] = x.NewTopic
	}
	for i, x := range b.Assignments {
		if name, ok := written[same(x.NewTopic)]; ok {
			b.Assignments[i].NewTopic = name
		}
	}
	return Coverage{Assignments: append(a.Assignments, b.Assignments...), Outcome: a.with(b.Outcome)}, nil
}
