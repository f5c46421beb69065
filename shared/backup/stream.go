package backup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"

	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/settings"
)

// Place is where a notebook is, or is to be.
type Place struct {
	JS        jetstream.JetStream
	Artifacts *artifact.Store
	Settings  *settings.Store
}

// original is topology.Original, also for a message without headers.
func original(header nats.Header, seq uint64, at time.Time) (uint64, time.Time) {
	return topology.Original(header, seq, at)
}

// Each gives the messages of a stream up to a sequence, in order and each once, in batches. do's error ends it. Messages that are
// purged meanwhile may be given or not.
func Each(ctx context.Context, js jetstream.JetStream, stream string, upTo uint64, do func([]projector.Message) error) error {
	if upTo == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := projector.New(js, projector.Config{Stream: stream, Logger: zerolog.Nop(), Handler: func(_ context.Context, messages []projector.Message) error {
		for len(messages) > 0 && messages[len(messages)-1].Seq > upTo {
			messages = messages[:len(messages)-1]
		}
		if len(messages) == 0 {
			return nil
		}
		return do(messages)
	}})
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	err := p.WaitFor(ctx, upTo)
	cancel()
	if failed := <-ended; failed != nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("read the stream %s up to %d: %w", stream, upTo, err)
	}
	return nil
}

// deletions are the threads and runs that were deleted.
type deletions struct {
	threads map[string]uint64 // to the sequence of the tombstone
	runs    map[string]bool
}

// readDeletions asks the stream for all tombstones that it holds now.
func readDeletions(ctx context.Context, stream jetstream.Stream) (deletions, error) {
	d := deletions{threads: map[string]uint64{}, runs: map[string]bool{}}
	for _, kind := range []string{event.ThreadDeleted{}.Kind(), event.RunDeleted{}.Kind()} {
		info, err := stream.Info(ctx, jetstream.WithSubjectFilter(kind+".>"))
		if err != nil {
			return d, fmt.Errorf("look for what was deleted: %w", err)
		}
		for subject := range info.State.Subjects {
			tokens := strings.Split(subject, ".")
			if kind == (event.RunDeleted{}).Kind() {
				d.runs[tokens[3]] = true
				continue
			}
			last, err := stream.GetLastMsgForSubject(ctx, subject)
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue
			}
			if err != nil {
				return d, fmt.Errorf("look for the tombstone of thread %s: %w", tokens[2], err)
			}
			d.threads[tokens[2]] = last.Sequence
		}
	}
	return d, nil
}

// gone says whether a message is one that the deletion of its thread takes away, though it may not have been purged yet.
func (d deletions) gone(m projector.Message) bool {
	return m.Seq < d.threads[threadOf(m.Subject)]
}

// newer says whether something was deleted between two readings.
func (d deletions) newer(later deletions) bool {
	return len(later.threads) != len(d.threads) || len(later.runs) != len(d.runs)
}

// threadOf is the third token of a subject of the notebook.
func threadOf(subject string) string {
	tokens := strings.SplitN(subject, ".", 5)
	if len(tokens) < 5 {
		return ""
	}
	return tokens[2]
}

// entityOf is the fourth.
func entityOf(subject string) string {
	tokens := strings.SplitN(subject, ".", 5)
	if len(tokens) < 5 {
		return ""
	}
	return tokens[3]
}
