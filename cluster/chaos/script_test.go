package chaos

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/shared/fault"
)

var setting = Setting{
	Servers:   []string{Bus},
	Processes: []string{"researcher", "researcher-2", "distiller", "judge", "briefer", "gateway"},
	Points: []fault.Point{{Name: "researcher.saved"}, {Name: "researcher.kept"}, {Name: "distiller.made"}, {Name: "judge.made"},
		{Name: "briefer.made"}, {Name: "gateway.asked"}},
	Disk: true,
}

func TestASeedMakesTheSameScriptAndAnotherSeedAnother(t *testing.T) {
	t.Parallel()
	first := NewScript(7, time.Minute, setting)
	require.Equal(t, first, NewScript(7, time.Minute, setting))
	require.Equal(t, first.String(), NewScript(7, time.Minute, setting).String())
	require.NotEqual(t, first.String(), NewScript(8, time.Minute, setting).String())
}

func TestAScriptHasFaultsOfEveryKindWithinItsTime(t *testing.T) {
	t.Parallel()
	script := NewScript(1, 10*time.Minute, setting)
	kinds := map[Kind]int{}
	for i, step := range script.Steps {
		kinds[step.Kind]++
		require.Less(t, step.At, script.Duration)
		if i > 0 {
			require.GreaterOrEqual(t, step.At, script.Steps[i-1].At)
		}
		if step.Kind == KindPoint {
			require.Contains(t, step.Faults, programOf(step.Target)+".", "a process has the points of its own program")
		}
	}
	for _, kind := range []Kind{KindKill, KindHold, KindPoint, KindBusKill, KindBusHold, KindBusAway, KindLow, KindFull, KindPoison} {
		require.NotZero(t, kinds[kind], kind)
	}
	actions, ways := map[string]int{}, map[Kind]int{}
	for _, m := range script.Moves {
		actions[m.Action]++
		ways[m.How]++
	}
	for _, action := range []string{"create", "start", "pause", "run", "cancel", "retry", "rebuild", "configure", "ask", "forget run", "delete"} {
		require.NotZero(t, actions[action], action)
	}
	require.NotZero(t, ways[KindHangUp]*ways[KindTwice])
	answers := map[standin.Fault]int{}
	for _, a := range script.Answers {
		answers[a.Fault]++
	}
	for _, kind := range []standin.Fault{"", standin.Drop, standin.Close, standin.Reset, standin.End, standin.Stall} {
		require.NotZero(t, answers[kind], kind)
	}
	setting := setting
	setting.Disk = false
	for _, step := range NewScript(1, 10*time.Minute, setting).Steps {
		require.NotContains(t, []Kind{KindLow, KindFull}, step.Kind, "no disk, no faults of it")
	}
}
