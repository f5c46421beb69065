package notebook_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/text"
)

// process is what a service has of the notebook: a connection, a tail and an appender of its own.
type process struct {
	js       jetstream.JetStream
	tail     *notebook.Tail
	appender *notebook.Appender
}

func open(t *testing.T, srv *embedded.Server) process {
	t.Helper()
	_, js := bustest.Dial(t, srv)
	tail := notebook.NewTail(js, zerolog.Nop())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- tail.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	return process{js: js, tail: tail, appender: notebook.NewAppender(js, tail, time.Now)}
}

func (p process) append(t *testing.T, thread string, cmd notebook.Command) (notebook.Appended, error) {
	t.Helper()
	return p.appender.Append(t.Context(), thread, cmd, notebook.Origin{})
}

func create(t *testing.T, p process, budget int) string {
	t.Helper()
	thread := text.RandomID()
	_, err := p.append(t, thread, notebook.CreateThread{Question: "Why?", Settings: event.Settings{
		Provider: event.Tabstack, Mode: event.Fast, Depth: 3, Batch: 1, Engine: "auto", Budget: budget,
	}})
	require.NoError(t, err)
	return thread
}

var live = notebook.Access{Live: true}

func TestConcurrentDispatchersNeverOverspend(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t)
	processes := []process{open(t, srv), open(t, srv), open(t, srv), open(t, srv)}
	thread := create(t, processes[0], 500)
	var wg sync.WaitGroup
	results := make([]error, 8)
	for i := range results {
		wg.Go(func() {
			_, results[i] = processes[i%len(processes)].append(t, thread, notebook.RequestRun{Run: fmt.Sprintf("run%d", i), Access: live})
		})
	}
	wg.Wait()
	reserved := 0
	for _, err := range results {
		var refused *notebook.Refusal
		switch {
		case err == nil:
			reserved++
		case errors.As(err, &refused):
			require.Equal(t, 402, refused.Status)
			require.Equal(t, 500, refused.Fields["reserved"], "a refusal is decided on the newest state")
		default:
			t.Fatal(err)
		}
	}
	require.Equal(t, 2, reserved)
}

func TestTheSameRequestReservesOnce(t *testing.T) {
	t.Parallel()
	srv, _, js := bustest.Start(t)
	a, b := open(t, srv), open(t, srv)
	thread := create(t, a, 2000)
	var wg sync.WaitGroup
	for _, p := range []process{a, b} {
		wg.Go(func() {
			_, err := p.appender.Append(t.Context(), thread, notebook.RequestRun{Run: "same", Access: live}, notebook.Origin{Seed: "key"})
			require.NoError(t, err)
		})
	}
	wg.Wait()
	stream, err := js.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	info, err := stream.Info(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 2, info.State.Msgs, "thread.created and one run.requested")
}

func TestTheSameRequestIsStoredOnceAlsoWhereItChangesNothing(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t)
	p := open(t, srv)
	thread := create(t, p, 500)
	budget := 750
	request := func() notebook.Appended {
		appended, err := p.appender.Append(t.Context(), thread, notebook.Configure{Changes: event.ThreadConfigured{Budget: &budget}}, notebook.Origin{Seed: "key"})
		require.NoError(t, err)
		return appended
	}
	first := request()
	again := request()
	require.Equal(t, first.Events[0].ID, again.Events[0].ID)
	stream, err := p.js.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	require.Equal(t, first.Seq, stream.CachedInfo().State.LastSeq, "an event of this id is there already, and readers would drop another")
}

func TestADecisionIsMadeOnWhatOthersAppended(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t)
	a, b := open(t, srv), open(t, srv)
	thread := create(t, a, 0)
	for i := range 20 {
		budget := 250 * (i + 1)
		_, err := a.append(t, thread, notebook.Configure{Changes: event.ThreadConfigured{Budget: &budget}})
		require.NoError(t, err)
		_, err = b.append(t, thread, notebook.RequestRun{Run: fmt.Sprintf("run%d", i), Access: live})
		require.NoError(t, err, "the other process had raised the budget before")
	}
}

// While the server goes away and comes back, writers either store a command once or say that they do not know; with the same seed they ask again.
func TestAppendsSurviveARestartOfTheServerOnce(t *testing.T) {
	t.Parallel()
	srv := bustest.Serve(t, embedded.Options{Dir: t.TempDir()})
	_, js := bustest.Dial(t, srv)
	require.NoError(t, topology.Declare(t.Context(), js, bustest.Options()))
	p := open(t, srv)
	thread := create(t, p, 1_000_000)
	const commands = 60
	halfway := make(chan struct{})
	done := make(chan error, 1)
	go func() {
		for i := range commands {
			if i == commands/3 {
				close(halfway)
			}
			id := fmt.Sprintf("q%d", i)
			if _, err := p.appender.Append(t.Context(), thread, notebook.AskQuestion{ID: id, Text: id + "?"}, notebook.Origin{Seed: id}); err != nil {
				done <- fmt.Errorf("%s: %w", id, err)
				return
			}
		}
		done <- nil
	}()
	<-halfway
	bustest.Restart(t, srv, nil)
	require.NoError(t, <-done)
	_, err := p.tail.CatchUp(t.Context())
	require.NoError(t, err)
	p.tail.View(thread, func(th *notebook.Thread) {
		require.Len(t, th.QIDs, commands+1)
		require.EqualValues(t, commands+1, th.Seq, "one event each, and that of the creation")
	})
}

func TestAnIdThatNoSubjectCanHoldIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t)
	p := open(t, srv)
	thread := create(t, p, 500)
	for _, id := range []string{"", "a.b", "a b", ">"} {
		_, err := p.append(t, thread, notebook.AskQuestion{ID: id, Text: "What?"})
		require.ErrorIs(t, err, notebook.ErrInvalid, "%q", id)
	}
}

func TestWhatCannotBeReadIsPassedAndShown(t *testing.T) {
	t.Parallel()
	srv, nc, js := bustest.Start(t)
	p := open(t, srv)
	thread := create(t, p, 500)
	for subject, body := range map[string]string{
		"thread.paused." + thread + ".0.0":  "no JSON",
		"thread.renamed." + thread + ".0.0": `{"id":"x1","type":"factstream.thread.renamed.v1","thread":"` + thread + `","n":0,"data":{"a":1}}`,
		"ext.note." + thread + ".x.0":       `{"mine":true}`,
	} {
		_, err := js.Publish(t.Context(), subject, []byte(body))
		require.NoError(t, err)
	}
	_ = nc
	_, err := p.append(t, thread, notebook.RequestRun{Run: "run1", Access: live})
	require.NoError(t, err, "the thread goes on")
	p.tail.ViewAll(func(n *notebook.Notebook) {
		bad, count := n.Bad()
		require.Equal(t, 2, count, "somebody else's event is not one of them")
		var told []string
		for _, b := range bad {
			told = append(told, b.Error)
		}
		require.Contains(t, strings.Join(told, "\n"), "malformed")
		require.Contains(t, strings.Join(told, "\n"), `a type that this version does not know: "factstream.thread.renamed.v1"`)
	})
}
