package document_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/connect"
	"github.com/factstream/factstream/jetstream/document"
	"github.com/factstream/factstream/jetstream/topology"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(bustest.Leaks(m)) }

func TestNoChangeIsLost(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	bucket, err := js.KeyValue(t.Context(), topology.BucketSettings)
	require.NoError(t, err)
	value, revision, err := document.Read(t.Context(), bucket, "numbers")
	require.NoError(t, err)
	require.Nil(t, value)
	require.Zero(t, revision)

	const writers, each = 4, 10
	var wg sync.WaitGroup
	errs := make([]error, writers)
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				errs[w] = errors.Join(errs[w], document.Change(t.Context(), bucket, "numbers", func(old []byte) ([]byte, error) {
					var numbers []int
					if old != nil {
						if err := json.Unmarshal(old, &numbers); err != nil {
							return nil, err
						}
					}
					return json.Marshal(append(numbers, w*each+i))
				}))
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	var numbers, all []int
	value, revision, err = document.Read(t.Context(), bucket, "numbers")
	require.NoError(t, err)
	require.Positive(t, revision)
	require.NoError(t, json.Unmarshal(value, &numbers))
	for i := range writers * each {
		all = append(all, i)
	}
	require.ElementsMatch(t, all, numbers)
}

func TestAChangeMayLeaveItOrFail(t *testing.T) {
	t.Parallel()
	_, _, js := bustest.Start(t)
	bucket, err := js.KeyValue(t.Context(), topology.BucketSettings)
	require.NoError(t, err)
	refused := errors.New("refused")
	require.ErrorIs(t, document.Change(t.Context(), bucket, "k", func([]byte) ([]byte, error) { return nil, refused }), refused)
	require.NoError(t, document.Change(t.Context(), bucket, "k", func(old []byte) ([]byte, error) {
		require.Nil(t, old)
		return nil, nil
	}))
	_, revision, err := document.Read(t.Context(), bucket, "k")
	require.NoError(t, err)
	require.Zero(t, revision)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, document.Change(over, bucket, "k", func([]byte) ([]byte, error) { return []byte("v"), nil }))
}

// The first request of a change reads, the second writes.
func TestAChangeWhoseAnswerIsLostIsMadeOnce(t *testing.T) {
	t.Parallel()
	line, bucket := throughALine(t)
	times := 0
	require.NoError(t, document.Change(t.Context(), bucket, "numbers", func(old []byte) ([]byte, error) {
		if times++; times == 1 {
			line.Lose(1)
		}
		return append(old, '1'), nil
	}))
	require.Zero(t, line.Left())
	value, revision, err := document.Read(t.Context(), bucket, "numbers")
	require.NoError(t, err)
	require.Equal(t, "1", string(value))
	require.EqualValues(t, 1, revision, "written once")
}

func TestAChangeThatWasMadeThoughNobodySaidSoIsDone(t *testing.T) {
	t.Parallel()
	_, bucket := throughALine(t)
	lost := &answerless{KeyValue: bucket}
	require.NoError(t, document.Change(t.Context(), lost, "numbers", func(old []byte) ([]byte, error) { return append(old, '1'), nil }))
	value, revision, err := document.Read(t.Context(), bucket, "numbers")
	require.NoError(t, err)
	require.Equal(t, "1", string(value))
	require.EqualValues(t, 1, revision)
}

// answerless loses the answer of what it creates.
type answerless struct{ jetstream.KeyValue }

func (a *answerless) Create(ctx context.Context, key string, value []byte, opts ...jetstream.KVCreateOpt) (uint64, error) {
	if _, err := a.KeyValue.Create(ctx, key, value, opts...); err != nil {
		return 0, err
	}
	return 0, context.DeadlineExceeded
}

func TestAChangeEndsWhenNobodyAnswers(t *testing.T) {
	t.Parallel()
	line, bucket := throughALine(t)
	line.LoseAll()
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	err := document.Change(ctx, bucket, "numbers", func([]byte) ([]byte, error) { return []byte("1"), nil })
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, ctx.Err())
}

func throughALine(t *testing.T) (*bustest.Line, jetstream.KeyValue) {
	t.Helper()
	srv, _, _ := bustest.Start(t)
	line := bustest.Between(t, srv)
	ctx, cancel := context.WithTimeout(t.Context(), bustest.Patience)
	defer cancel()
	nc, js, err := connect.Dial(ctx, connect.Config{URL: line.URL(), CredentialsFile: srv.CredentialsFile(), Logger: zerolog.Nop()})
	require.NoError(t, err)
	t.Cleanup(nc.Close)
	return line, bustest.Bucket(t, js, topology.BucketSettings)
}
