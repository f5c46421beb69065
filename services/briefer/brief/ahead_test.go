package brief

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/engine"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service/servicetest"
)

// failing makes a step of the briefer do what fails says, as often as it does not say nil, and then its work.
func (s *story) failing(stage string, fails func(call int32) error) *atomic.Int32 {
	var calls atomic.Int32
	work := s.briefer.steps[stage]
	s.briefer.steps[stage] = func(ctx context.Context, c closing, m *engine.Engine) (notebook.Command, error) {
		if err := fails(calls.Add(1)); err != nil {
			return nil, err
		}
		return work(ctx, c, m)
	}
	return &calls
}

func TestAStepThatFailsAheadIsDoneAndNamedByItself(t *testing.T) {
	t.Parallel()
	for stage, want := range map[string][]string{
		event.StageQuestions: {"stage.failed", "brief.written", "coverage.mapped", "thread.settled"},
		event.StageBrief:     {"questions.proposed", "stage.failed", "coverage.mapped", "thread.settled"},
		event.StageCoverage:  {"questions.proposed", "brief.written", "stage.failed", "thread.settled"},
	} {
		t.Run(stage, func(t *testing.T) {
			t.Parallel()
			s := begin(t, nil)
			calls := s.failing(stage, func(int32) error { return model.ErrSchema })
			s.start()
			s.tell(nil, nil, costs)
			s.settled(1, 0)
			events := s.events()
			require.Equal(t, want, kinds(events[len(events)-4:]))
			require.EqualValues(t, 2, calls.Load(), "ahead, and by itself")
			failures := one[event.ThreadSettled](s).Failures
			require.Len(t, failures, 1)
			require.Equal(t, stage, failures[0].Stage)
		})
	}
}

func TestAPanicInAStepAheadEndsNoProcess(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	s.failing(event.StageBrief, func(call int32) error {
		if call < 3 {
			panic("a fact that nobody thought of")
		}
		return nil
	})
	s.start()
	s.tell(nil, nil, costs)
	s.settled(1, 0)
	require.Len(t, s.events("brief.written"), 1)
	require.Empty(t, one[event.ThreadSettled](s).Failures, "it passed when the message came again")
}

func TestWhatIsNotTheStepsOwnFailureBringsTheMessageAgain(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	away := errors.New("the bus is away")
	s.failing(event.StageBrief, func(call int32) error {
		if call < 3 {
			return away
		}
		return nil
	})
	s.fold()
	s.tell(nil, nil, costs)
	closed := message(t, s.events("contradictions.found")[0])
	require.ErrorIs(t, s.briefer.handle(t.Context(), closed), away)
	require.NoError(t, s.briefer.handle(t.Context(), closed))
	for _, kind := range []string{"questions.proposed", "brief.written", "coverage.mapped", "thread.settled"} {
		require.Len(t, s.events(kind), 1, kind)
	}
}

func TestWhatIsLeftWhenAPersonSetsAnotherEngineIsThatEngines(t *testing.T) {
	t.Parallel()
	s := begin(t, nil)
	other := model.EngineOllama
	s.failing(event.StageBrief, func(call int32) error {
		if call == 1 {
			s.append(notebook.Configure{Changes: event.ThreadConfigured{Engine: &other}})
			servicetest.Until(t, s.briefer.Service, thread, func(th *notebook.Thread) bool { return th.Settings.Engine == other })
		}
		return nil
	})
	s.fold()
	s.tell(nil, nil, costs)
	require.ErrorIs(t, s.briefer.handle(t.Context(), message(t, s.events("contradictions.found")[0])), model.ErrAway)
	require.Empty(t, s.events("brief.written", "coverage.mapped", "thread.settled"))
}
