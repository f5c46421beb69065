package projector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/factstream/factstream/jetstream/topology"
)

const (
	pullBytes         = 8 << 20 // what one pull may bring, so that big messages do not pile up
	inactiveThreshold = 30 * time.Second
	directTry         = time.Second // a direct reading is given up after this, and tried again
	// lookupTry is for one question about the stream: one that a server took with it
	// when it was killed is never answered, whatever time ctx leaves.
	lookupTry = 2 * time.Second
	maxPause  = time.Second
	// shortTries is how often the stream may seem to end before the cursor until that
	// is believed: a new leader may not have applied everything in its first moment.
	shortTries = 5
)

// consume feeds p.in from a consumer of its own, in order and without a gap, and
// makes it again behind the position whenever something is odd. It ends with ctx
// (nil) or with ErrStreamChanged.
func (p *Projector) consume(ctx context.Context) error {
	pause, short := 10*time.Millisecond, 0
	for ctx.Err() == nil {
		stream, err := p.stream(ctx)
		switch {
		case errors.Is(err, ErrStreamChanged):
			return err
		case err == nil && stream.CachedInfo().State.LastSeq < p.Position():
			if short++; short == shortTries {
				return fmt.Errorf("%w: %s ends at %d, the cursor is %d", ErrStreamChanged, p.cfg.Stream,
					stream.CachedInfo().State.LastSeq, p.Position())
			}
		case err == nil:
			short = 0
			var delivered bool
			if delivered, err = p.follow(ctx, stream); delivered {
				pause = 10 * time.Millisecond
			}
		}
		if err != nil && ctx.Err() == nil {
			p.cfg.Logger.Debug().Err(err).Str("stream", p.cfg.Stream).Msg("tail interrupted, going on")
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, maxPause)
	}
	return nil
}

// stream looks the stream up and checks that it is the one of the cursor.
func (p *Projector) stream(ctx context.Context) (jetstream.Stream, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTry)
	defer cancel()
	stream, err := p.js.Stream(ctx, p.cfg.Stream)
	if err != nil {
		return nil, fmt.Errorf("look up stream %s: %w", p.cfg.Stream, err)
	}
	created := stream.CachedInfo().Created
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.created.IsZero() {
		p.created = created
	}
	if !created.Equal(p.created) {
		return nil, fmt.Errorf("%w: %s was created %s, the cursor's one %s", ErrStreamChanged, p.cfg.Stream,
			created.Format(time.RFC3339Nano), p.created.Format(time.RFC3339Nano))
	}
	return stream, nil
}

// follow passes messages on until the consumer fails or misses one, and tells
// whether any came.
func (p *Projector) follow(ctx context.Context, stream jetstream.Stream) (delivered bool, err error) {
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Description:       "tail",
		DeliverPolicy:     jetstream.DeliverByStartSequencePolicy,
		OptStartSeq:       p.Position() + 1,
		FilterSubject:     p.cfg.Filter,
		AckPolicy:         jetstream.AckNonePolicy,
		MemoryStorage:     true,
		Replicas:          1,
		InactiveThreshold: inactiveThreshold,
	})
	if err != nil {
		return false, fmt.Errorf("create consumer: %w", err)
	}
	defer p.forget(ctx, stream, consumer.CachedInfo().Name)
	for next := uint64(1); ; next += uint64(p.cfg.Batch) {
		some, err := p.pull(ctx, consumer, next)
		delivered = delivered || some
		if err != nil {
			return delivered, err
		}
	}
}

// room is how many times as many messages as are asked for fit into the library's channel. It drops what finds the channel full, and has made no room
// for what comes between messages: heartbeats for as long as nobody takes any, and a line at the end of every request that limits bytes.
const room = 4

// pull passes one batch of messages on, the first of which must be the consumer's delivery number next. It asks for no more before those are taken, so that a
// handler may take its time. delivered tells whether any came.
func (p *Projector) pull(ctx context.Context, consumer jetstream.Consumer, next uint64) (delivered bool, err error) {
	it, err := consumer.Messages(
		jetstream.PullMaxMessagesWithBytesLimit(room*p.cfg.Batch, pullBytes),
		jetstream.StopAfter(p.cfg.Batch),
		jetstream.PullExpiry(p.cfg.Expiry),
		jetstream.PullHeartbeat(p.cfg.Heartbeat),
		jetstream.WithMessagesErrOnMissingHeartbeat(true),
	)
	if err != nil {
		return false, fmt.Errorf("pull: %w", err)
	}
	defer it.Stop()
	for range p.cfg.Batch {
		msg, err := it.Next(jetstream.NextContext(ctx))
		if err != nil {
			return delivered, err
		}
		meta, err := msg.Metadata()
		if err != nil {
			return delivered, err
		}
		if meta.Sequence.Consumer != next {
			return delivered, fmt.Errorf("delivery %d came, %d was due", meta.Sequence.Consumer, next)
		}
		next++
		delivered = true
		m := newMessage(msg.Subject(), msg.Headers(), msg.Data(), meta.Sequence.Stream, meta.Timestamp)
		select {
		case p.in <- m:
		case <-ctx.Done():
			return delivered, ctx.Err()
		}
	}
	return delivered, nil
}

// forget deletes a consumer that is not used any more; if that fails, the server
// does so after inactiveThreshold.
func (p *Projector) forget(ctx context.Context, stream jetstream.Stream, name string) {
	if !p.js.Conn().IsConnected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), directTry)
	defer cancel()
	if err := stream.DeleteConsumer(ctx, name); err != nil {
		p.cfg.Logger.Debug().Err(err).Str("consumer", name).Msg("consumer not deleted, the server will")
	}
}

// reading is the result of reading the stream directly: messages that follow the
// position it began at, without a gap; or, if there were none, the sequence up to
// which there is nothing to apply.
type reading struct {
	messages []Message
	upTo     uint64
	err      error
}

// readOn reads what follows from and hands it to Run.
func (p *Projector) readOn(ctx context.Context, from uint64) {
	try, cancel := context.WithTimeout(ctx, directTry)
	defer cancel()
	var r reading
	r.messages, r.upTo, r.err = p.read(try, from)
	select {
	case p.direct <- r:
	case <-ctx.Done():
	}
}

func (p *Projector) read(ctx context.Context, from uint64) (messages []Message, upTo uint64, err error) {
	stream, err := p.stream(ctx)
	if err != nil {
		return nil, 0, err
	}
	last := stream.CachedInfo().State.LastSeq
	if last <= from {
		return nil, 0, nil
	}
	// Any replica answers a direct get. One that lags gives fewer messages, but what
	// it gives has no gap; only an empty answer needs the leader's word.
	messages, err = p.batch(ctx, from+1)
	if len(messages) > 0 {
		return messages, 0, nil
	}
	if err != nil && !errors.Is(err, jetstreamext.ErrNoMessages) {
		return nil, 0, err
	}
	some, err := p.leaderHasMore(ctx, from+1)
	if err != nil {
		return nil, 0, fmt.Errorf("read %s from %d: %w", p.cfg.Stream, from+1, err)
	}
	if some {
		return nil, 0, errReplicaLags
	}
	return nil, last, nil // purged, or of other subjects
}

var errReplicaLags = errors.New("the replica that answered lags behind the leader")

// leaderHasMore asks the stream's leader whether it holds a message at or after
// seq. The library's GetMsg would ask any replica.
func (p *Projector) leaderHasMore(ctx context.Context, seq uint64) (bool, error) {
	filter := p.cfg.Filter
	if filter == "" {
		filter = ">"
	}
	_, err := askLeader(ctx, p.js, p.cfg.Stream, map[string]any{"seq": seq, "next_by_subj": filter})
	if errors.Is(err, ErrNoMessage) {
		return false, nil
	}
	return err == nil, err
}

func apiPrefix(js jetstream.JetStream) string {
	opts := js.Options()
	switch {
	case opts.APIPrefix != "":
		return strings.TrimSuffix(opts.APIPrefix, ".") + "."
	case opts.Domain != "":
		return "$JS." + opts.Domain + ".API."
	default:
		return jetstream.DefaultAPIPrefix
	}
}

func (p *Projector) batch(ctx context.Context, from uint64) ([]Message, error) {
	opts := []jetstreamext.GetBatchOpt{jetstreamext.GetBatchSeq(from), jetstreamext.GetBatchMaxBytes(pullBytes)}
	if p.cfg.Filter != "" {
		opts = append(opts, jetstreamext.GetBatchSubject(p.cfg.Filter))
	}
	answers, err := jetstreamext.GetBatch(ctx, p.js, p.cfg.Stream, p.cfg.Batch, opts...)
	if err != nil {
		return nil, fmt.Errorf("read %s from %d: %w", p.cfg.Stream, from, err)
	}
	var messages []Message
	for m, err := range answers {
		if err != nil {
			return messages, fmt.Errorf("read %s from %d: %w", p.cfg.Stream, from, err)
		}
		messages = append(messages, newMessage(m.Subject, m.Header, m.Data, m.Sequence, m.Time))
	}
	return messages, nil
}

func newMessage(subject string, header nats.Header, data []byte, seq uint64, at time.Time) Message {
	m := Message{Subject: subject, Header: header, Data: data, Seq: seq}
	m.Original, m.Time = topology.Original(header, seq, at)
	return m
}
