//go:build threeservers

package notebook_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/notebook"
)

func TestMain(m *testing.M) {
	bustest.ServeIfAsked()
	os.Exit(m.Run())
}

const patience = 3 * time.Minute

// Four processes put questions to one thread while each server in turn is killed, the leader first. Every command is stored once: one that nobody could answer for is
// asked again with its seed, as a client does with its Idempotency-Key.
func TestCommandsAreStoredOnceWhileServersAreKilled(t *testing.T) {
	c := bustest.StartCluster(t, nil)
	c.Declare(t)
	processes := make([]process, 4)
	for i := range processes {
		_, js := c.Dial(t, i%bustest.Servers)
		tail := notebook.NewTail(js, zerolog.Nop())
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		ended := make(chan error, 1)
		go func() { ended <- tail.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			require.NoError(t, <-ended)
		})
		processes[i] = process{js: js, tail: tail, appender: notebook.NewAppender(js, tail, time.Now)}
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	thread := create(t, processes[0], 1_000_000)

	calm := make(chan struct{})
	var working sync.WaitGroup
	var commands, uncertain atomic.Int64
	for i, p := range processes {
		working.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-calm:
					return
				default:
				}
				id := fmt.Sprintf("q%d-%d", i, n)
				for {
					_, err := p.appender.Append(ctx, thread, notebook.AskQuestion{ID: id, Text: id + "?"}, notebook.Origin{Seed: id, Timeout: notebook.CommandTimeout})
					var unknown *notebook.Uncertain
					if errors.As(err, &unknown) && ctx.Err() == nil {
						uncertain.Add(1)
						continue
					}
					if err != nil {
						t.Errorf("%s: %v", id, err)
						return
					}
					break
				}
				commands.Add(1)
			}
		})
	}
	first, _ := c.Leader(ctx, processes[0].js, topology.Notebook)
	for i := range bustest.Servers {
		victim, before := (first+i)%bustest.Servers, commands.Load()
		c.Kill(victim)
		began := time.Now()
		require.Eventually(t, func() bool { return commands.Load() > before+int64(len(processes)) }, patience, 5*time.Millisecond, "without server %d", victim)
		t.Logf("without server %d: all go on after %v at most", victim, time.Since(began).Round(time.Millisecond))
		c.Run(t, victim)
		require.NoError(t, c.AwaitWhole(ctx, processes[0].js, topology.Notebook))
	}
	close(calm)
	working.Wait()

	for _, p := range processes {
		_, err := p.tail.CatchUp(ctx)
		require.NoError(t, err)
		p.tail.View(thread, func(th *notebook.Thread) {
			require.Len(t, th.QIDs, int(commands.Load())+1)
			require.EqualValues(t, commands.Load()+1, th.Seq, "one event each, and that of the creation")
		})
	}
	t.Logf("%d commands, %d asked again", commands.Load(), uncertain.Load())
}
