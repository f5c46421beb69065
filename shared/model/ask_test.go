package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// scripted is a model that answers with what stands in its script, text or error.
type scripted struct {
	mu      sync.Mutex
	answers []any
	asked   []Request
	digest  string
	away    error
}

func (m *scripted) Info(context.Context) (Info, error) {
	return Info{Engine: "scripted", ChatModel: "m", ChatDigest: m.digest, EmbedModel: "e", EmbedDigest: "e1", Dimension: 1}, m.away
}

func (m *scripted) Generate(_ context.Context, req Request) (Reply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked = append(m.asked, req)
	if len(m.answers) == 0 {
		return Reply{}, errors.New("the script is over")
	}
	answer := m.answers[0]
	m.answers = m.answers[1:]
	if err, ok := answer.(error); ok {
		return Reply{}, err
	}
	return Reply{Text: answer.(string), Engine: "scripted", Model: "m", Digest: m.digest}, nil
}

func (m *scripted) Embed(context.Context, []string, EmbedKind) ([][]float32, error) { return nil, nil }

// shelf is a Keeper in memory.
type shelf map[Key]Record

func (s shelf) Do(ctx context.Context, key Key, req Request, call func(context.Context) (Reply, error)) (Record, error) {
	if record, ok := s[key]; ok {
		record.Found = true
		return record, nil
	}
	reply, err := call(ctx)
	if err != nil {
		return Record{}, err
	}
	record, err := NewRecord(req, reply, time.Unix(0, 0))
	if err == nil {
		s[key] = record
	}
	return record, err
}

const (
	distinct = `{"reason":"other things","relation":"distinct"}`
	nonsense = `{"relation":"none"}`
)

var pair = JudgeTask{Elder: Statement{Text: "a"}, Newer: Statement{Text: "b"}}

func TestABadReplyIsAskedForOnceMore(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]any{
		"of another form": nonsense,
		"empty":           fmt.Errorf("m: %w", ErrEmpty),
		"cut by length":   fmt.Errorf("m: %w", ErrLength),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &scripted{answers: []any{first, distinct}}
			v, err := Judge(t.Context(), Call{Model: m, Priority: Interactive}, pair)
			require.NoError(t, err)
			require.Equal(t, Distinct, v.Relation)
			require.Equal(t, 2, v.Tries)
			require.Len(t, m.asked, 2)
			require.NotEqual(t, m.asked[0].Prompt, m.asked[1].Prompt, "at temperature 0 the same prompt gets the same answer")
			require.Contains(t, m.asked[1].Prompt, "An earlier answer was refused")
			require.Equal(t, Interactive, m.asked[1].Priority)
			require.Equal(t, name == "cut by length", m.asked[1].MaxTokens > m.asked[0].MaxTokens)
		})
	}
}

func TestASecondBadReplyEndsTheStep(t *testing.T) {
	t.Parallel()
	m := &scripted{answers: []any{nonsense, nonsense, distinct}}
	_, err := Judge(t.Context(), Call{Model: m}, pair)
	require.ErrorIs(t, err, ErrSchema)
	require.Equal(t, ClassBad, Class(err))
	require.False(t, Later(err))
	require.Len(t, m.asked, 2)
}

func TestOtherFailuresAreNotAskedAgain(t *testing.T) {
	t.Parallel()
	for _, failure := range []error{ErrAway, ErrBusy, ErrMemory, ErrTimeout, ErrPromptTooLong, ErrRefused, context.Canceled, &MissingError{Models: []string{"m"}}} {
		m := &scripted{answers: []any{failure, distinct}}
		_, err := Judge(t.Context(), Call{Model: m}, pair)
		require.ErrorIs(t, err, failure)
		require.Len(t, m.asked, 1)
	}
	m := &scripted{away: fmt.Errorf("tcp: %w", ErrAway)}
	_, err := Judge(t.Context(), Call{Model: m}, pair)
	require.ErrorIs(t, err, ErrAway)
	require.Empty(t, m.asked)
}

func TestAKeptReplyIsUsedWithTheTaskThatItAnswers(t *testing.T) {
	t.Parallel()
	kept := shelf{}
	m := &scripted{digest: "d1", answers: []any{`{"findings":[{"text":"Opened.","facts":[1]}],"disputed":[],"gaps":[],"relationships":[]}`}}
	call := Call{Model: m, Replies: kept, Thread: "t", Trigger: "e1"}
	task := BriefTask{Question: "q", Facts: []BriefFact{{N: 1, Ref: "first", Statement: "s"}}}
	b, err := WriteBrief(t.Context(), call, task)
	require.NoError(t, err)
	require.False(t, b.Kept)
	task.Facts = []BriefFact{{N: 1, Ref: "another", Statement: "another"}}
	b, err = WriteBrief(t.Context(), call, task)
	require.NoError(t, err)
	require.True(t, b.Kept)
	require.Equal(t, "first", b.Findings[0].Facts[0], "number 1 is what it was when the model chose it")
	require.Len(t, m.asked, 1)
}

func TestWhatMakesAReplyTheSame(t *testing.T) {
	t.Parallel()
	base := Call{Thread: "t", Trigger: "e1", Part: "1"}
	info := Info{ChatDigest: "d1"}
	key := base.key(info, "distill", 1)
	differs := map[string]Key{
		"thread":  Call{Thread: "u", Trigger: "e1", Part: "1"}.key(info, "distill", 1),
		"trigger": Call{Thread: "t", Trigger: "e2", Part: "1"}.key(info, "distill", 1),
		"part":    Call{Thread: "t", Trigger: "e1", Part: "2"}.key(info, "distill", 1),
		"step":    base.key(info, "brief", 1),
		"model":   base.key(Info{ChatDigest: "d2"}, "distill", 1),
		"try":     base.key(info, "distill", 2),
	}
	for what, other := range differs {
		require.NotEqual(t, key, other, what)
	}
	a, b := Call{Thread: "t", Trigger: "e1", Pair: "x|y"}, Call{Thread: "t", Trigger: "e2", Pair: "x|y"}
	require.Equal(t, a.key(info, "judge", 1), b.key(info, "judge", 1), "a pair is the same whatever brought it together")
	require.NotEqual(t, a.key(info, "judge", 2), b.key(info, "judge", 2), "but bad replies about it do not outlive their trigger")
}

func TestTheTurnIsTakenForCallsOnly(t *testing.T) {
	t.Parallel()
	turns := 0
	m := &scripted{answers: []any{nonsense, distinct}}
	call := Call{Model: m, Replies: shelf{}, Thread: "t", Trigger: "e", Turn: func(ctx context.Context, _ Priority, fn func(context.Context) error) error {
		turns++
		return fn(ctx)
	}}
	for range 2 {
		v, err := Judge(t.Context(), call, pair)
		require.NoError(t, err)
		require.Equal(t, Distinct, v.Relation)
	}
	require.Equal(t, 2, turns)

	lost := errors.New("the lease is lost")
	call.Thread, call.Turn = "u", func(context.Context, Priority, func(context.Context) error) error { return lost }
	_, err := Judge(t.Context(), call, pair)
	require.ErrorIs(t, err, lost)
}

// direct answers by values what is scripted so, and in words everything.
type direct struct {
	*scripted
	answer any
}

func (m direct) Answer(context.Context, Task) (any, Reply, error) {
	return m.answer, Reply{Engine: "direct", Model: "m", Digest: "d1", Duration: time.Millisecond}, nil
}

func TestAnEngineOfThisProcessIsAskedByValues(t *testing.T) {
	t.Parallel()
	turns := 0
	m := direct{&scripted{}, JudgeReply{Reason: "same figures", Relation: "duplicate"}}
	call := Call{Model: m, Turn: func(ctx context.Context, _ Priority, fn func(context.Context) error) error {
		turns++
		return fn(ctx)
	}}
	v, err := Judge(t.Context(), call, pair)
	require.NoError(t, err)
	require.Equal(t, Verdict{Relation: Duplicate, Reason: "same figures", Outcome: Outcome{Engine: "direct", Model: "m", Digest: "d1", Drops: Drops{}, Tries: 1, Duration: time.Millisecond}}, v)
	require.Equal(t, 1, turns, "in its turn")
	require.Empty(t, m.asked)

	m = direct{&scripted{}, JudgeReply{Relation: "same"}}
	_, err = Judge(t.Context(), Call{Model: m}, pair)
	require.ErrorIs(t, err, ErrSchema, "its answers are checked too")

	m = direct{&scripted{}, BriefReply{}}
	_, err = Judge(t.Context(), Call{Model: m}, pair)
	require.ErrorIs(t, err, ErrSchema)
	require.Contains(t, err.Error(), "model.BriefReply, not model.JudgeReply")
}

func TestWhereRepliesAreKeptTheyAreAskedForInWords(t *testing.T) {
	t.Parallel()
	m := direct{&scripted{answers: []any{distinct}}, JudgeReply{Relation: "duplicate"}}
	v, err := Judge(t.Context(), Call{Model: m, Replies: shelf{}, Thread: "t", Trigger: "e"}, pair)
	require.NoError(t, err)
	require.Equal(t, Distinct, v.Relation)
	require.Len(t, m.asked, 1)
}

func TestALongTaskIsHalved(t *testing.T) {
	t.Parallel()
	fact := func(statement string, n int) string {
		return fmt.Sprintf(`{"facts":[{"statement":%q,"confidence":0.5,"tags":[],"sentences":[%d],"page":null}]}`, statement, n)
	}
	kept := shelf{}
	m := &scripted{answers: []any{ErrPromptTooLong, fact("One.", 1), ErrLength, ErrLength, fact("one.", 2), fact("Three.", 3)}}
	task := DistillTask{Question: "q", Sentences: []Numbered{{N: 1, Text: "1"}, {N: 2, Text: "2"}, {N: 3, Text: "3"}}, MaxFacts: 5}
	d, err := Distill(t.Context(), Call{Model: m, Replies: kept, Thread: "t", Trigger: "e"}, task)
	require.NoError(t, err)
	require.Len(t, d.Facts, 2, "the same fact of two halves is one")
	require.Equal(t, Drops{DropDuplicate: 1}, d.Drops)
	require.Len(t, kept, 3, "each part is kept under its own name")

	m = &scripted{answers: []any{ErrPromptTooLong}}
	task.Sentences = task.Sentences[:1]
	_, err = Distill(t.Context(), Call{Model: m}, task)
	require.Equal(t, ClassTooLong, Class(err), "one sentence cannot be halved")

	assign := `{"assignments":[{"fact":%d,"topic":null,"new_topic":%q}]}`
	m = &scripted{answers: []any{ErrPromptTooLong, fmt.Sprintf(assign, 1, "Noise"), fmt.Sprintf(assign, 2, "noise")}}
	c, err := MapCoverage(t.Context(), Call{Model: m}, CoverageTask{Facts: []CoverageFact{{N: 1, Ref: "a"}, {N: 2, Ref: "b"}}})
	require.NoError(t, err)
	require.Equal(t, []Assignment{{Fact: "a", NewTopic: "Noise"}, {Fact: "b", NewTopic: "Noise"}}, c.Assignments)

	m = &scripted{answers: []any{ErrPromptTooLong, `{"findings":[{"text":"A.","facts":[1]},{"text":"B.","facts":[2]}],"disputed":[],"gaps":[],"relationships":[]}`}}
	b, err := WriteBrief(t.Context(), Call{Model: m}, BriefTask{Previous: "old", Facts: []BriefFact{{N: 1, Ref: "a", Statement: "s"}, {N: 2, Ref: "b", Statement: "s"}}})
	require.NoError(t, err)
	require.Len(t, b.Findings, 1)
	require.Equal(t, Drops{DropLeftOut: 1, DropUnknownFact: 1, DropNoFact: 1}, b.Drops)

	m = &scripted{answers: []any{ErrPromptTooLong, `{"questions":[{"text":"Old?","reason":"","score":1},{"text":"New?","reason":"","score":1}]}`}}
	q, err := Questions(t.Context(), Call{Model: m}, QuestionsTask{Root: "r", Asked: []string{"Old?", "Older?"}, Max: 5})
	require.NoError(t, err)
	require.Len(t, q.Questions, 1, "what was asked stays asked when the list shown is halved")
}

func TestNothingToDoAsksNobody(t *testing.T) {
	t.Parallel()
	call := Call{Model: &scripted{away: ErrAway}}
	d, err := Distill(t.Context(), call, DistillTask{})
	require.NoError(t, err)
	require.NotNil(t, d.Drops)
	b, err := WriteBrief(t.Context(), call, BriefTask{})
	require.NoError(t, err)
	require.NotNil(t, b.Drops)
	c, err := MapCoverage(t.Context(), call, CoverageTask{})
	require.NoError(t, err)
	require.NotNil(t, c.Drops)
}

func TestEveryFailureHasAClass(t *testing.T) {
	t.Parallel()
	for failure, want := range map[error]struct {
		class string
		later bool
	}{
		ErrAway: {ClassAway, true}, ErrCutShort: {ClassAway, true}, ErrBusy: {ClassBusy, true}, ErrMemory: {ClassMemory, true},
		ErrMissing: {ClassMissing, true}, ErrTimeout: {ClassTimeout, false}, ErrPromptTooLong: {ClassTooLong, false},
		ErrLength: {ClassBad, false}, ErrEmpty: {ClassBad, false}, ErrSchema: {ClassBad, false}, ErrRefused: {ClassBad, false}, ErrEmbedding: {ClassBad, false},
		context.Canceled: {"", false}, errors.New("bus"): {"", false},
	} {
		wrapped := fmt.Errorf("judge: %w", failure)
		require.Equal(t, want.class, Class(wrapped), failure)
		require.Equal(t, want.later, Later(wrapped), failure)
	}
	missing := fmt.Errorf("judge: %w", &MissingError{Models: []string{"a:3b", "b"}})
	require.Equal(t, ClassMissing, Class(missing))
	require.Contains(t, missing.Error(), "ollama pull a:3b && ollama pull b")
	require.Empty(t, Class(nil))
}

func TestChoose(t *testing.T) {
	t.Parallel()
	there, away := &scripted{}, &scripted{away: &MissingError{Models: []string{"llama3.2:3b"}}}
	for _, c := range []struct {
		setting string
		ollama  Model
		want    string
		why     string
	}{
		{EngineAuto, there, EngineOllama, "has m and e"},
		{"", there, EngineOllama, ""},
		{EngineAuto, away, EngineExtractive, "ollama pull llama3.2:3b"},
		{EngineOllama, away, EngineOllama, "settings"},
		{EngineExtractive, there, EngineExtractive, "settings"},
	} {
		engine, why, err := Choose(t.Context(), c.setting, c.ollama)
		require.NoError(t, err)
		require.Equal(t, c.want, engine)
		require.Contains(t, why, c.why)
	}
	_, _, err := Choose(t.Context(), "gpt", there)
	require.Error(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = Choose(ctx, EngineAuto, away)
	require.ErrorIs(t, err, context.Canceled, "a step that is stopped chooses nothing for ever")
}

func TestRequestsSurviveBeingKept(t *testing.T) {
	t.Parallel()
	for _, task := range hostileTasks() {
		record, err := NewRecord(task.Request(), Reply{Text: "x"}, time.Unix(1, 0).UTC())
		require.NoError(t, err)
		data, err := json.Marshal(record)
		require.NoError(t, err)
		var back Record
		require.NoError(t, json.Unmarshal(data, &back))
		require.Equal(t, record, back)
		require.True(t, strings.HasPrefix(string(back.Task), "{"))
	}
}
