package telemetry

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestATraceTravelsFromMessageToMessage(t *testing.T) {
	t.Parallel()
	ctx := Extract(context.Background(), nats.Header{"traceparent": {parent}, "tracestate": {"a=b"}})
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", TraceID(ctx))

	out := nats.Header{}
	Inject(ctx, out)
	require.Regexp(t, `^00-0af7651916cd43dd8448eb211c80319c-[0-9a-f]{16}-01$`, out.Get("traceparent"))
	require.NotEqual(t, parent, out.Get("traceparent"), "the handler is a span of its own")
	require.Equal(t, "a=b", out.Get("tracestate"))
}

func TestWithoutATraceANewOneBegins(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, header := range []nats.Header{nil, {}, {"traceparent": {"nonsense"}}, {"traceparent": {"00-" + "00000000000000000000000000000000" + "-b7ad6b7169203331-01"}}} {
		id := TraceID(Extract(context.Background(), header))
		require.Len(t, id, 32)
		require.False(t, seen[id])
		seen[id] = true
	}

	out := nats.Header{}
	Inject(context.Background(), out)
	require.Regexp(t, `^00-[0-9a-f]{32}-[0-9a-f]{16}-01$`, out.Get("traceparent"))
	require.Empty(t, TraceID(context.Background()))
}

func FuzzExtract(f *testing.F) {
	f.Add(parent, "a=b")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, traceparent, tracestate string) {
		ctx := Extract(context.Background(), nats.Header{"traceparent": {traceparent}, "tracestate": {tracestate}})
		if len(TraceID(ctx)) != 32 {
			t.Fatalf("no trace after %q", traceparent)
		}
	})
}

func TestStepsAreCountedByStageAndOutcome(t *testing.T) {
	t.Parallel()
	m := NewMetrics("judge")
	m.Step("judge", OutcomeDone, 30*time.Millisecond)
	m.Step("judge", OutcomeDone, 3*time.Second)
	m.Step("judge", OutcomeFailed, time.Second)

	recorder := httptest.NewRecorder()
	m.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	body, err := io.ReadAll(recorder.Body)
	require.NoError(t, err)
	require.Contains(t, string(body), `factstream_steps_total{outcome="done",service="judge",stage="judge"} 2`)
	require.Contains(t, string(body), `factstream_steps_total{outcome="failed",service="judge",stage="judge"} 1`)
	require.Contains(t, string(body), `factstream_step_seconds_count{service="judge",stage="judge"} 3`)
	require.Contains(t, string(body), "go_goroutines")
}
