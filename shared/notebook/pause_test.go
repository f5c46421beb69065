package notebook

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/event"
)

// TestOnlyStartEndsAPause tells the fates of random threads again event by event: whatever is withdrawn, fails, settles, is retried or
// changed meanwhile, a paused thread stays paused until a person presses Start or deletes it.
func TestOnlyStartEndsAPause(t *testing.T) {
	t.Parallel()
	pauses, starts, outlived := 0, 0, 0
	for seed := range uint64(min(fates, 3000)) {
		w := newWorld(t, seed)
		w.live(20 + int(seed%120))
		again := NewThread("t")
		for i, e := range w.log {
			was := again.Standing
			again.Evolve(e)
			_, pressed := e.Data.(event.ThreadPaused)
			switch {
			case pressed:
				pauses++
				require.Equal(t, Paused, again.Standing)
			case was != Paused || e.Kind() == "thread.deleted":
			case again.Standing != Paused && (e.Kind() == "thread.started" || e.Kind() == "thread.parked"):
				starts++ // it is parked by a Start that finds nothing to do
				// What workers do has ids by the event that they consumed; a person's Start has one by where it stands (world.do).
				byPerson := EventID("random at "+strconv.Itoa(i), "t", Draft{Entity: e.Entity, Run: e.Run, N: e.N, Data: e.Data}, 0)
				require.Equal(t, byPerson, e.ID, "seed %d: Pause was ended by nobody's Start\n%s", seed, w.history())
			default:
				require.Equal(t, Paused, again.Standing, "seed %d: Pause was lost at %d %s\n%s", seed, e.Seq, e.Kind(), w.history())
				outlived++
			}
		}
	}
	t.Logf("%d pauses, %d ended by Start, %d events outlived", pauses, starts, outlived)
	require.Greater(t, pauses, min(fates, 3000)/10)
	require.Greater(t, starts, 0)
	require.Greater(t, outlived, pauses)
}
