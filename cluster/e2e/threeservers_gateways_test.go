//go:build threeservers

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/cluster/chaos"
)

func TestWithOneGatewayDeadTheOtherAnswersEverythingAndItsEventsGoOnWhereTheyWere(t *testing.T) {
	f := three(t)
	one, other := f.gateway(0), f.gateway(1)
	before := one.create(map[string]any{"question": "What was before?", "auto": false})
	run := one.researched(before.ID, nil)

	// Who watches goes from one gateway to the other and back, whenever the one it is at ends.
	tape := &tape{t: t, more: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		for n := 0; ctx.Err() == nil; n++ {
			tape.listen(ctx, f.URLs[n%len(f.URLs)])
		}
	}()
	t.Cleanup(func() { cancel(); <-watched })
	tape.until(one.thread(before.ID).Position)

	for dead, names := range []string{chaos.Gateway, chaos.Gateway + "-2"} {
		back := f.Away(names)
		alive := other
		if dead == 1 {
			alive = one
		}
		// A write that was answered by the one that died is the same write at the other, and can be read there.
		again := call[thread](alive, http.StatusCreated, http.MethodPost, base+"/threads", map[string]any{"question": "Is it still there?", "auto": false}, "Idempotency-Key", fmt.Sprint("same-", dead))
		require.Equal(t, again.ID, call[thread](alive, http.StatusCreated, http.MethodPost, base+"/threads", map[string]any{"question": "Is it still there?", "auto": false}, "Idempotency-Key", fmt.Sprint("same-", dead)).ID)
		alive.completed(alive.researched(again.ID, nil).ID, 1)
		asked := 0
		for path, methods := range call[struct{ Paths map[string]map[string]any }](alive, http.StatusOK, http.MethodGet, "/openapi.json", nil).Paths {
			if methods["get"] == nil {
				continue
			}
			path = strings.NewReplacer("{thread}", before.ID, "{run}", run.ID, "{fact}", alive.factsOf(before.ID)[0].ID).Replace(path)
			if strings.Contains(path, "{") || strings.HasSuffix(path, "/events") || strings.HasSuffix(path, "/stream") {
				continue
			}
			status, text, err := alive.try(http.MethodGet, path, nil)
			require.NoError(t, err, path)
			require.Contains(t, []int{http.StatusOK, http.StatusNotFound, http.StatusUnprocessableEntity}, status, "%s: %s", path, text) // there may be none of it, or it wants to know what
			if status == http.StatusOK {
				asked++
			}
		}
		require.GreaterOrEqual(t, asked, 10)
		t.Logf("with %s dead, %d paths are answered", names, asked)
		tape.until(alive.thread(again.ID).Position)
		back()
		require.NoError(t, f.Ready(t.Context()))
		revived := f.gateway(dead)
		require.Equal(t, again.ID, call[thread](revived, http.StatusCreated, http.MethodPost, base+"/threads", map[string]any{"question": "Is it still there?", "auto": false}, "Idempotency-Key", fmt.Sprint("same-", dead)).ID)
		require.Equal(t, alive.factsOf(again.ID), revived.factsOf(again.ID))
	}

	for i, n := range tape.until(one.thread(before.ID).Position) {
		require.Equal(t, uint64(i+1), n.Seq, "every event, and each once")
	}
}
