package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/jetstream/worker"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/engine"
	"github.com/factstream/factstream/shared/engine/enginetest"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/ollama/ollamatest"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/progress"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/service/servicetest"
	"github.com/factstream/factstream/shared/settings"
)

const thread = "t1"

// bench is a service with a thread and an Ollama server.
type bench struct {
	bus     *servicetest.Bus
	server  *ollamatest.Server
	s       *service.Service
	engines *engine.Engines
}

func setup(t *testing.T, setting string, options engine.Options) bench {
	b := bench{bus: servicetest.NewBus(t), server: ollamatest.Start(t)}
	b.s, b.engines = b.open(t, "distiller", options)
	enginetest.Create(t, b.s, thread, setting, "How dense are solid-state cells?")
	return b
}

func (b bench) open(t *testing.T, name string, options engine.Options) (*service.Service, *engine.Engines) {
	s := b.bus.Open(name, enginetest.Ollama(b.server))
	engines, err := engine.Open(t.Context(), s, options)
	require.NoError(t, err)
	servicetest.Run(t, s)
	_, err = s.Tail.CatchUp(t.Context())
	require.NoError(t, err)
	return s, engines
}

func step(trigger string) engine.Step {
	return engine.Step{Thread: thread, Entity: "r1", Stage: event.StageDistill, Trigger: trigger, Delivered: 1,
		Wanted: func(*notebook.Thread) bool { return true }}
}

func (b bench) setting() (engine string) {
	b.s.Tail.View(thread, func(t *notebook.Thread) { engine = t.Settings.Engine })
	return engine
}

func task() model.JudgeTask {
	return model.JudgeTask{Elder: model.Statement{Text: "The cell stores 450 Wh/kg."}, Newer: model.Statement{Text: "The cell stores 380 Wh/kg."}}
}

func ask(ctx context.Context, m *engine.Engine) error {
	_, err := model.Judge(ctx, m.Call(""), task())
	return err
}

// While auto finds no model here, another worker of the thread finds one and records it.
func TestAStepDoneWithAnEngineThatTheThreadDoesNotHaveIsDoneAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, "auto", engine.Options{})
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		servicetest.Append(t, b.s, thread, notebook.SetEngine{Engine: "ollama"})
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"models": []}`))
	}))
	t.Cleanup(other.Close)
	s := b.bus.Open("judge", func(c *config.Config) { c.Ollama.Host = other.URL })
	engines, err := engine.Open(t.Context(), s, engine.Options{})
	require.NoError(t, err)
	servicetest.Run(t, s)
	_, err = s.Tail.CatchUp(t.Context())
	require.NoError(t, err)

	made := false
	err = engines.Do(t.Context(), step("e1"), func(_ context.Context, m *engine.Engine) error {
		require.True(t, m.Quick())
		if err := m.Recorded(); err != nil {
			return err
		}
		made = true
		return nil
	})
	require.ErrorContains(t, err, "another engine was set")
	require.False(t, made)
	require.Equal(t, "ollama", b.setting())
	var name string
	require.NoError(t, b.engines.Do(t.Context(), step("e1"), used(&name)))
	require.Equal(t, "ollama", name)
}

func used(into *string) func(context.Context, *engine.Engine) error {
	return func(_ context.Context, m *engine.Engine) error {
		*into = m.Info.Engine
		return nil
	}
}

func TestAutoTakesTheLanguageModelThatAnswersAndRecordsItFirst(t *testing.T) {
	t.Parallel()
	b := setup(t, "auto", engine.Options{})
	var name string
	require.NoError(t, b.engines.Do(t.Context(), step("e1"), func(ctx context.Context, m *engine.Engine) error {
		require.Equal(t, "ollama", b.setting(), "recorded before the step does anything")
		return used(&name)(ctx, m)
	}))
	require.Equal(t, "ollama", name)

	b.server.Remove(ollamatest.ChatModel)
	err := b.engines.Do(t.Context(), step("e2"), used(&name))
	require.ErrorIs(t, err, model.ErrMissing, "the thread waits for its engine and never takes the other")
	require.Contains(t, err.Error(), "ollama pull "+ollamatest.ChatModel)
	require.Equal(t, "ollama", b.setting())
}

// The steps of a closing have one trigger. A person who sets the thread back to auto between two of them gets a choice anew, which
// is another event than the first.
func TestAutoIsChosenAgainWhenAPersonAsksForIt(t *testing.T) {
	t.Parallel()
	b := setup(t, "auto", engine.Options{})
	var name string
	require.NoError(t, b.engines.Do(t.Context(), step("e1"), used(&name)))
	require.Equal(t, "ollama", b.setting())
	auto := "auto"
	servicetest.Append(t, b.s, thread, notebook.Configure{Changes: event.ThreadConfigured{Engine: &auto}})
	require.Equal(t, "auto", b.setting())
	require.NoError(t, b.engines.Do(t.Context(), step("e1"), used(&name)))
	require.Equal(t, "ollama", b.setting())
}

func TestAutoTakesTheEngineWithoutAModelWhenNoneIsThere(t *testing.T) {
	t.Parallel()
	b := setup(t, "auto", engine.Options{})
	b.server.Remove(ollamatest.EmbedModel)
	var name string
	require.NoError(t, b.engines.Do(t.Context(), step("e1"), func(ctx context.Context, m *engine.Engine) error {
		require.True(t, m.Quick())
		require.NoError(t, m.Recorded())
		require.Equal(t, "extractive", b.setting(), "recorded before an outcome is")
		require.NoError(t, m.Recorded())
		return used(&name)(ctx, m)
	}))
	require.Equal(t, "extractive", name)

	b.server.Install(ollamatest.EmbedModel)
	require.NoError(t, b.engines.Do(t.Context(), step("e2"), used(&name)))
	require.Equal(t, "extractive", name, "the choice lasts")
}

func TestTwoWorkersChooseTheSameEngine(t *testing.T) {
	t.Parallel()
	b := setup(t, "auto", engine.Options{})
	_, other := b.open(t, "judge", engine.Options{})
	var one, two string
	done := make(chan error, 2)
	go func() { done <- b.engines.Do(t.Context(), step("e1"), used(&one)) }()
	go func() { done <- other.Do(t.Context(), step("e2"), used(&two)) }()
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	require.Equal(t, one, two)
}

func TestAChangedSettingCountsFromTheNextStep(t *testing.T) {
	t.Parallel()
	b := setup(t, "ollama", engine.Options{})
	other := ollamatest.Start(t)
	other.Install("other:latest")
	var patch settings.Patch
	require.NoError(t, json.Unmarshal([]byte(`{"ollama": {"host": "`+other.URL()+`", "chat_model": "other:latest"}}`), &patch))
	require.NoError(t, b.engines.Do(t.Context(), step("e1"), func(ctx context.Context, m *engine.Engine) error {
		require.NoError(t, b.s.Settings.Save(ctx, patch))
		return ask(ctx, m)
	}))
	require.Len(t, b.server.Chats(), 1)
	require.NoError(t, b.engines.Do(t.Context(), step("e2"), ask))
	require.Len(t, b.server.Chats(), 1)
	require.Equal(t, "other:latest", other.Chats()[0].Model)
}

func TestAnAddressThatCannotBeReadIsAModelThatIsAway(t *testing.T) {
	t.Parallel()
	b := setup(t, "ollama", engine.Options{})
	s := b.bus.Open("judge", func(cfg *config.Config) { cfg.Ollama.Host = "http://[::1" })
	engines, err := engine.Open(t.Context(), s, engine.Options{})
	require.NoError(t, err)
	servicetest.Run(t, s)
	require.NoError(t, s.Tail.WaitFor(t.Context(), b.s.Tail.Position()))
	require.ErrorIs(t, engines.Do(t.Context(), step("e1"), ask), model.ErrAway)
}

func TestOneProcessAtATimeAsks(t *testing.T) {
	t.Parallel()
	b := setup(t, "ollama", engine.Options{})
	_, engines := b.open(t, "judge", engine.Options{})
	hold := make(chan struct{})
	b.server.Script(ollamatest.Answer{Hold: hold})
	done := make(chan error, 2)
	go func() { done <- b.engines.Do(t.Context(), step("e1"), ask) }()
	ollamatest.Soon(t, "the first call is under way", func() bool { return b.server.InFlight() == 1 })
	go func() {
		second := step("e2")
		second.Stage = event.StageJudge
		done <- engines.Do(t.Context(), second, ask)
	}()
	require.Eventually(t, func() bool { return shown(t, b.s, event.StageJudge).State.State == progress.Waiting }, servicetest.Wait, 10*time.Millisecond)
	require.Contains(t, shown(t, b.s, event.StageJudge).Text, "distiller@")
	// The board forgets, and a write may get lost: it is shown again while it lasts.
	board, err := b.s.JS.Stream(t.Context(), "KV_"+topology.BucketProgress)
	require.NoError(t, err)
	require.NoError(t, board.Purge(t.Context()))
	require.Eventually(t, func() bool { return shown(t, b.s, event.StageJudge).State.State == progress.Waiting }, servicetest.Wait, 10*time.Millisecond)
	close(hold)
	require.NoError(t, <-done)
	require.NoError(t, <-done)
	require.Equal(t, 1, b.server.MostAtOnce())
	require.Len(t, b.server.Chats(), 2)
}

func shown(t *testing.T, s *service.Service, stage string) progress.Entry {
	entries, err := s.Progress.Read(t.Context(), thread)
	require.NoError(t, err)
	for _, e := range entries {
		if e.Stage == stage {
			return e
		}
	}
	return progress.Entry{}
}

func TestTheEngineWithoutAModelNeedsNoTurnAndKeepsNoReplies(t *testing.T) {
	t.Parallel()
	b := setup(t, "extractive", engine.Options{})
	require.NoError(t, b.s.Leases.Do(t.Context(), "model", 0, func(context.Context) error {
		return b.engines.Do(t.Context(), step("e1"), func(ctx context.Context, m *engine.Engine) error {
			if err := ask(ctx, m); err != nil {
				return err
			}
			_, err := m.Embed(ctx, []string{"a cell"}, nil)
			return err
		})
	}))
	require.Zero(t, b.server.Calls("/api/tags"))
	replies, err := b.s.JS.KeyValue(t.Context(), topology.BucketReplies)
	require.NoError(t, err)
	require.Empty(t, keys(t, replies))
}

func TestAReplyIsNotAskedForTwice(t *testing.T) {
	t.Parallel()
	b := setup(t, "ollama", engine.Options{})
	require.NoError(t, b.engines.Do(t.Context(), step("e1"), ask))
	require.NoError(t, b.engines.Do(t.Context(), step("e1"), ask))
	require.Len(t, b.server.Chats(), 1)
	require.NoError(t, b.engines.Do(t.Context(), step("e2"), ask), "another trigger")
	require.Len(t, b.server.Chats(), 2)

	pair := func(ctx context.Context, m *engine.Engine) error {
		_, err := model.Judge(ctx, m.CallPair("a", "b"), task())
		return err
	}
	require.NoError(t, b.engines.Do(t.Context(), step("e1"), pair))
	require.NoError(t, b.engines.Do(t.Context(), step("e2"), pair), "a verdict belongs to its texts")
	require.Len(t, b.server.Chats(), 3)
}

func TestAStepThatWorksTooLongIsGivenUp(t *testing.T) {
	t.Parallel()
	b := setup(t, "ollama", engine.Options{Limit: time.Second})
	b.server.Script(ollamatest.Answer{Hold: make(chan struct{})})
	err := b.engines.Do(t.Context(), step("e1"), ask)
	require.ErrorIs(t, err, model.ErrTimeout)
	ollamatest.Soon(t, "the connection is closed", func() bool { return b.server.InFlight() == 0 })
}

func TestWaitingForATurnIsNoWork(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Second
	b := setup(t, "ollama", engine.Options{Limit: limit})
	held, release := make(chan struct{}), make(chan struct{})
	go func() {
		_ = b.s.Leases.Do(t.Context(), "model", 0, func(context.Context) error {
			close(held)
			<-release
			return nil
		})
	}()
	<-held
	done := make(chan error, 1)
	go func() { done <- b.engines.Do(t.Context(), step("e1"), ask) }()
	select {
	case err := <-done:
		t.Fatalf("ended while it waited: %v", err)
	case <-time.After(3 * limit / 2): // longer than it may work
	}
	close(release)
	require.NoError(t, <-done)
}

func TestAStepEndsWhenItsThreadIsDeletedAndLeavesNoReplies(t *testing.T) {
	t.Parallel()
	b := setup(t, "ollama", engine.Options{})
	b.server.Script(ollamatest.Answer{}, ollamatest.Answer{Hold: make(chan struct{})})
	done := make(chan error, 1)
	go func() {
		done <- b.engines.Do(t.Context(), step("e1"), func(ctx context.Context, m *engine.Engine) error {
			if _, err := model.Judge(ctx, m.Call("first"), task()); err != nil {
				return err
			}
			_, err := model.Judge(ctx, m.Call("second"), task())
			return err
		})
	}()
	ollamatest.Soon(t, "the second call is under way", func() bool { return len(b.server.Chats()) == 2 })
	replies, err := b.s.JS.KeyValue(t.Context(), topology.BucketReplies)
	require.NoError(t, err)
	require.Len(t, keys(t, replies), 1)
	servicetest.Append(t, b.s, thread, notebook.DeleteThread{})
	require.NoError(t, <-done)
	require.Empty(t, keys(t, replies))
	ollamatest.Soon(t, "the connection is closed", func() bool { return b.server.InFlight() == 0 })

	require.NoError(t, b.engines.Do(t.Context(), step("e1"), ask), "and it does not begin again")
	require.Len(t, b.server.Chats(), 2)
}

func keys(t *testing.T, bucket jetstream.KeyValue) []string {
	lister, err := bucket.ListKeys(t.Context())
	require.NoError(t, err)
	var all []string
	for key := range lister.Keys() {
		all = append(all, key)
	}
	return all
}

func TestFailuresThatEndAStageAreNamed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		class string // "" does not end it
	}{
		"none":       {nil, ""},
		"away":       {model.ErrAway, ""},
		"busy":       {model.ErrBusy, ""},
		"missing":    {&model.MissingError{Models: []string{"m"}}, ""},
		"memory":     {model.ErrMemory, ""},
		"cut short":  {model.ErrCutShort, ""},
		"not theirs": {errors.New("the bus does not answer"), ""},
		"unwanted":   {fmt.Errorf("%w: %w", model.ErrTimeout, engine.ErrUnwanted), ""},
		"length":     {model.ErrLength, model.ClassBad},
		"schema":     {model.ErrSchema, model.ClassBad},
		"prompt":     {model.ErrPromptTooLong, model.ClassTooLong},
		"time":       {model.ErrTimeout, model.ClassTimeout},
	} {
		class, reason, ended := engine.Failure(c.err)
		require.Equal(t, c.class != "", ended, name)
		require.Equal(t, c.class, class, name)
		if ended {
			require.Equal(t, c.err.Error()+".", reason)
		}
	}
}

func TestReasonsSayWhatWasKeptAndWhatToDo(t *testing.T) {
	t.Parallel()
	const kept = "The report is kept."
	for class, advice := range map[string]string{
		event.ClassModelAway:    "by itself when the model answers again",
		model.ClassBad:          "choose another model",
		model.ClassTimeout:      "smaller model",
		worker.ClassCrashLoop:   "20 times",
		worker.ClassMalformed:   "dead letters",
		"something new in time": "Retry the stage",
	} {
		reason := engine.Reason(worker.Failure{Class: class, Err: errors.New("it said no")}, kept)
		require.Contains(t, reason, kept, class)
		require.Contains(t, reason, advice, class)
		require.Regexp(t, `^[A-Zi].*\.$`, reason, class)
	}
}
