package model

import (
	"cmp"
	"context"
	"slices"

	"github.com/factstream/factstream/shared/text"
)

// QuestionsTask asks what to research next.
type QuestionsTask struct {
	Root           string          `json:"root"`                     // the thread's question
	PreviousBrief  string          `json:"previous_brief,omitempty"` // plain text of the last brief
	Facts          []string        `json:"facts,omitempty"`          // statements that the cycle brought
	Gaps           []string        `json:"gaps,omitempty"`           // what the provider said is missing
	Contradictions []StatementPair `json:"contradictions,omitempty"` // open ones
	ThinTopics     []string        `json:"thin_topics,omitempty"`    // names of topics with fewer than 3 facts
	Asked          []string        `json:"asked,omitempty"`          // every question of the thread so far; the newest matter most and stand last
	Known          []KnownFact     `json:"known,omitempty"`          // facts of the thread, oldest first: for an engine that does not read the brief
	Max            int             `json:"max"`                      // at least 1
}

// KnownFact is a fact that counts, with what may make it worth another question.
type KnownFact struct {
	Statement string   `json:"statement"`
	Tags      []string `json:"tags,omitempty"` // among them the headings that it stood under
	Retrieved string   `json:"retrieved"`      // day, as 2026-03-01
	Published string   `json:"published,omitempty"`
	Pages     int      `json:"pages"` // that support it
	Disputed  bool     `json:"disputed,omitempty"`
}

// StatementPair is two statements that contradict each other.
type StatementPair struct {
	A string `json:"a"`
	B string `json:"b"`
}

// QuestionsReply is the form of the answer.
type QuestionsReply struct {
	Questions []PlannedQuestion `json:"questions"`
}

// PlannedQuestion is one question to research, as a model writes it and as it is checked: then Text is one line of 1 to 2,000
// characters, Score is 0..1, and Reason one line of at most 300 characters or "".
type PlannedQuestion struct {
	Text   string  `json:"text"`
	Reason string  `json:"reason"`
	Score  float64 `json:"score"` // how much the answer would help
}

// Planned is what a planning call gave, the highest score first and equal ones in the order of the reply.
type Planned struct {
	Questions []PlannedQuestion
	Outcome
}

// What a planning prompt shows at most: counts of items, and characters of each.
const (
	MaxPlanBrief          = 4000
	MaxPlanFacts          = 40
	MaxPlanGaps           = 10
	MaxPlanContradictions = 10
	MaxPlanTopics         = 15
	MaxPlanAsked          = 60
	MaxPlanKnown          = 300 // shown to no prompt

	maxPlanned   = 2000 // characters of a planned question: one that quotes two statements quotes them whole
	maxPlanFact  = 300
	maxPlanGap   = 500
	maxPlanTopic = 80
	maxPlanAsked = 200
)

var questionsSchema = literal(`{
	"type": "object", "required": ["questions"],
	"properties": {"questions": {"type": "array", "items": {
		"type": "object", "required": ["text", "reason", "score"],
		"properties": {
			"text": {"type": "string"},
			"reason": {"type": "string"},
			"score": {"type": "number"}
		}}}}}`)

const questionsRules = `Task: propose the next questions to research, so that the main question gets answered.
- text: one question that stands alone and can be put to a search engine: name the subject, no "it", no numbers of the lists. Write it in the language of the main question.
- It must not repeat or merely reword a question that was asked before.
- Prefer what settles a contradiction, fills a stated gap or feeds a thin topic.
- reason: one short sentence, why the answer would help.
- score: from 0 to 1, how much it would help.
Give fewer questions, or none, when nothing useful is left to ask.
`

// Step is "questions".
func (QuestionsTask) Step() string { return "questions" }

// fit cuts every list and text to what a prompt shows: the newest facts and questions, and the first of all else. The sides of a contradiction and
// the gaps stay longer than in a prompt, for an engine that quotes them.
func (t QuestionsTask) fit() QuestionsTask {
	t.Max = max(t.Max, 1)
	t.Root = text.Truncate(fold(t.Root), maxQuestion)
	t.PreviousBrief = text.Truncate(fold(t.PreviousBrief), MaxPlanBrief)
	t.Facts = each(last(t.Facts, MaxPlanFacts), maxPlanFact)
	t.Gaps = each(first(t.Gaps, MaxPlanGaps), maxPlanned/2)
	t.ThinTopics = each(first(t.ThinTopics, MaxPlanTopics), maxPlanTopic)
	t.Asked = each(last(t.Asked, MaxPlanAsked), maxPlanAsked)
	t.Known = last(t.Known, MaxPlanKnown)
	pairs := first(t.Contradictions, MaxPlanContradictions)
	t.Contradictions = make([]StatementPair, len(pairs))
	for i, pair := range pairs {
		t.Contradictions[i] = StatementPair{A: text.Truncate(fold(pair.A), maxStatement), B: text.Truncate(fold(pair.B), maxStatement)}
	}
	return t
}

// Request renders the task.
func (t QuestionsTask) Request() Request {
	p := newPrompt(t)
	p.say("Give at most %s.", plural(t.Max, "question"))
	p.quote("The main question:", []string{material(t.Root, maxQuestion)})
	if t.PreviousBrief != "" {
		p.quote("What the last brief said:", []string{material(t.PreviousBrief, MaxPlanBrief)})
	}
	p.quote("New facts:", listed(t.Facts, maxPlanFact))
	p.quote("Gaps that the last research named:", listed(t.Gaps, maxPlanGap))
	var pairs []string
	for _, pair := range t.Contradictions {
		pairs = append(pairs, "- "+material(pair.A, maxPlanFact)+" <> "+material(pair.B, maxPlanFact))
	}
	p.quote("Open contradictions:", pairs)
	p.quote("Topics with few facts:", listed(t.ThinTopics, maxPlanTopic))
	p.quote("Asked before, do not ask again:", listed(t.Asked, maxPlanAsked))
	return Request{Task: t, System: system(questionsRules, questionsSchema), Prompt: p.String(), Schema: questionsSchema, MaxTokens: 200 + 150*t.Max}
}

// Check keeps of a reply at most Max questions that are new. It is pure. Questions that are alike but not the same are for the
// caller, who has their vectors.
func (t QuestionsTask) Check(reply QuestionsReply) ([]PlannedQuestion, Drops) {
	drops := Drops{}
	asked := map[string]bool{same(t.Root): true}
	for _, q := range t.Asked {
		asked[same(q)] = true
	}
	var out []PlannedQuestion
	for _, q := range reply.Questions {
		text, cause := sentence(q.Text, maxPlanned)
		if cause == "" && asked[same(text)] {
			cause = DropDuplicate
		}
		if cause != "" {
			drops.add(cause)
			continue
		}
		asked[same(text)] = true
		out = append(out, PlannedQuestion{Text: text, Reason: reason(q.Reason, drops), Score: share(q.Score, drops)})
	}
	slices.SortStableFunc(out, func(a, b PlannedQuestion) int { return cmp.Compare(b.Score, a.Score) })
	for len(out) > t.Max {
		out = out[:len(out)-1]
		drops.add(DropOverLimit)
	}
	return out, drops
}

// Questions asks for the next questions. If the task is too long for the model's context, it is put with half of each list.
func Questions(ctx context.Context, call Call, task QuestionsTask) (Planned, error) {
	asked := task.Asked
	task = task.fit()
	answered, reply, out, err := ask[QuestionsTask, QuestionsReply](ctx, call, task)
	if tooMuch(err) {
		answered, reply, out, err = ask[QuestionsTask, QuestionsReply](ctx, call.part("half"), task.half())
	}
	if err != nil {
		return Planned{Outcome: out}, err
	}
	// A prompt shows fewer questions, and long ones cut; what must not be repeated stays the same.
	answered.Asked = append(answered.Asked, asked...)
	questions, drops := answered.Check(reply)
	out.Drops = drops
	return Planned{Questions: questions, Outcome: out}, nil
}

// half is the task with half of each list and text, for a model with a small context.
func (t QuestionsTask) half() QuestionsTask {
	t.PreviousBrief = text.Truncate(t.PreviousBrief, MaxPlanBrief/2)
	t.Facts = last(t.Facts, len(t.Facts)/2)
	t.Gaps = first(t.Gaps, (len(t.Gaps)+1)/2)
	t.Contradictions = first(t.Contradictions, (len(t.Contradictions)+1)/2)
	t.ThinTopics = first(t.ThinTopics, (len(t.ThinTopics)+1)/2)
	t.Asked = last(t.Asked, len(t.Asked)/2)
	return t
}

func first[E any](list []E, n int) []E { return list[:min(len(list), n)] }
func last[E any](list []E, n int) []E  { return list[max(len(list)-n, 0):] }

// each folds and cuts every text of a list and leaves out empty ones.
func each(list []string, max int) []string {
	var out []string
	for _, s := range list {
		if s = text.Truncate(fold(s), max); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// listed makes prompt lines of a list that is not numbered.
func listed(list []string, max int) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = "- " + material(s, max)
	}
	return out
}
