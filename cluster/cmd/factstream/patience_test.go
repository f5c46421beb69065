package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
)

func TestACommandThatReadsOutlivesAnElection(t *testing.T) {
	t.Parallel()
	away := fmt.Errorf("look for what was deleted: %w", context.DeadlineExceeded)
	broken := errors.New("the file is broken")
	for name, c := range map[string]struct {
		within  time.Duration
		answers []error // one a try
		is      error
		says    string
	}{
		"a server falls":       {time.Hour, []error{away, nats.ErrNoResponders, nil}, nil, ""},
		"at once":              {time.Hour, []error{nil}, nil, ""},
		"what stays wrong":     {time.Hour, []error{away, broken}, broken, ""},
		"the majority is away": {-1, []error{away}, context.DeadlineExceeded, "more than half of its servers"},
	} {
		t.Run(name, func(t *testing.T) {
			tries := 0
			var said bytes.Buffer
			err := patiently(t.Context(), c.within, time.Millisecond, &said, func() error {
				tries++
				return c.answers[tries-1]
			})
			require.ErrorIs(t, err, c.is)
			if c.says != "" {
				require.ErrorContains(t, err, c.says)
			}
			require.Equal(t, len(c.answers), tries)
			require.Equal(t, tries-1, bytes.Count(said.Bytes(), []byte("\n")))
		})
	}

	ctx, stop := context.WithCancel(t.Context())
	err := patiently(ctx, time.Hour, time.Hour, &bytes.Buffer{}, func() error { stop(); return away })
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
