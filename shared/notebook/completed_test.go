package notebook_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

// What the state does not keep of an answer is read again, as long as it is there.
func TestWhatARunBroughtIsReadAgain(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t)
	p := open(t, srv)
	thread := create(t, p, 2000)
	must := func(cmd notebook.Command) notebook.Appended {
		t.Helper()
		appended, err := p.append(t, thread, cmd)
		require.NoError(t, err)
		return appended
	}
	must(notebook.RequestRun{Run: "r", Access: live})
	must(notebook.StartAttempt{Run: "r", Max: 3})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := p.tail.Completed(ctx, thread, "r")
	require.ErrorIs(t, err, notebook.ErrNoAnswer)
	require.ErrorContains(t, err, "has not completed")

	brought := event.RunCompleted{
		Attempt: 1, Cost: 250, Report: event.Blob{Text: "# It is so [1]"}, Metadata: event.Blob{Text: "{}"}, Gaps: []string{"Why?"},
		Pages: []event.Page{{N: 1, URL: "https://example.org/", Claims: event.Claims{Texts: []string{"It is."}}}},
	}
	must(notebook.CompleteRun{Run: "r", Completed: brought})
	got, err := p.tail.Completed(ctx, thread, "r")
	require.NoError(t, err)
	require.Equal(t, brought, got)

	// Somebody else deletes the thread: whoever still reads hears of it together with the fact that there is nothing to read.
	other := open(t, srv)
	_, err = other.tail.CatchUp(ctx)
	require.NoError(t, err)
	deleted, err := other.append(t, thread, notebook.DeleteThread{})
	require.NoError(t, err)
	stream, err := p.js.Stream(ctx, topology.Notebook)
	require.NoError(t, err)
	require.NoError(t, stream.Purge(ctx, jetstream.WithPurgeSubject(topology.ThreadFilter(thread)), jetstream.WithPurgeSequence(deleted.Seq)))
	_, err = p.tail.Completed(ctx, thread, "r")
	require.ErrorIs(t, err, notebook.ErrNoAnswer)
	p.tail.View(thread, func(t2 *notebook.Thread) { require.True(t, t2.Deleted) })
}
