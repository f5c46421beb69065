package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/jetstream/topology"
)

// SafeAge is how old something must be before Sweep may take it for left behind: twice the longest time of a put, so that none is under way
// for it any more, neither its own nor one that replaces it, whatever the clocks of servers differ by.
const SafeAge = 2 * longestTime

const (
	sweepAtMost = 1000 // removals by one sweep, of each kind; the rest is the next one's
	sweepTime   = 5 * time.Minute
)

// The subjects of the object store: a put's pieces are under one that no other put has, and a meta, which names them, under that of the object.
const (
	piecesOf = "$O." + topology.StoreArtifacts + ".C."
	metas    = "$O." + topology.StoreArtifacts + ".M.>"
)

// errBehind: the metas were read from a server that has not all of them yet. What they do not name may well be named.
var errBehind = errors.New("the server that was asked lags behind the others")

// Swept is what came of a sweep.
type Swept struct {
	Pieces   int   // puts whose pieces were removed
	Unwanted []Ref // artifacts that nobody wants; they are still there
}

// Sweep looks once through everything that is kept. It removes pieces that no meta names: of two processes that put equal content at the same
// moment, the pieces of one are left so, and of a process that ends in the middle of a put or a deletion its own. And it lists the artifacts
// that no name stands for and that are unwanted, a function that is asked for every other one. Both only of what is older than age, by the
// servers' clocks; less than SafeAge is for tests, since a put that is under way has pieces without a meta. At most 1,000 of each kind are
// dealt with at once. After an error what was removed until then is.
func (s *Store) Sweep(ctx context.Context, age time.Duration, unwanted func(thread string, ref Ref) bool) (swept Swept, err error) {
	ctx, cancel := context.WithTimeout(ctx, sweepTime)
	defer cancel()
	// Pieces first: whatever of them is named by then is named in what is read after it.
	kept, err := s.stream.Info(ctx, jetstream.WithSubjectFilter(piecesOf+"*"))
	if err != nil {
		return swept, fmt.Errorf("list the pieces of artifacts: %w", err)
	}
	unnamed, oldest := kept.State.Subjects, kept.TimeStamp.Add(-age)
	var candidates []Ref
	named := map[string]bool{} // references that have a name
	err = s.eachMeta(ctx, func(info jetstream.ObjectInfo) {
		if info.Deleted { // it names none: what is left of them is to go
			return
		}
		delete(unnamed, piecesOf+info.NUID)
		thread, name, _ := strings.Cut(info.Name, "/")
		if strings.Contains(name, ".") {
			if ref, err := refOf(&info); err == nil {
				named[ref.Ref] = true
			}
			return
		}
		ref := Ref{Ref: info.Name, SHA256: name, Size: int64(info.Size)}
		if ref.check() == nil && info.ModTime.Before(oldest) && unwanted(thread, ref) {
			candidates = append(candidates, ref)
		}
	})
	if err != nil {
		return swept, fmt.Errorf("list the artifacts: %w", err)
	}
	for _, ref := range candidates {
		if !named[ref.Ref] && len(swept.Unwanted) < sweepAtMost {
			swept.Unwanted = append(swept.Unwanted, ref)
		}
	}
	swept.Pieces, err = s.purgeOlder(ctx, unnamed, oldest)
	return swept, err
}

// purgeOlder removes pieces of which the newest is older than a time.
func (s *Store) purgeOlder(ctx context.Context, pieces map[string]uint64, than time.Time) (purged int, err error) {
	looked := 0
	for subject := range pieces { // in no order, so that those that are too young do not stand before the rest for ever
		if looked++; looked > sweepAtMost {
			break
		}
		newest, err := s.stream.GetLastMsgForSubject(ctx, subject)
		if errors.Is(err, jetstream.ErrMsgNotFound) { // gone meanwhile
			continue
		}
		if err != nil {
			return purged, fmt.Errorf("look at the pieces %s: %w", subject, err)
		}
		if !newest.Time.Before(than) {
			continue
		}
		if err := s.stream.Purge(ctx, jetstream.WithPurgeSubject(subject)); err != nil {
			return purged, fmt.Errorf("remove the pieces %s: %w", subject, err)
		}
		purged++
	}
	return purged, nil
}

// eachMeta reads the meta of every object that there is at the moment of the call, with the server's time as ModTime, also those that say that
// one was deleted. One that cannot be read is an error, since what it names is not known.
func (s *Store) eachMeta(ctx context.Context, do func(jetstream.ObjectInfo)) error {
	newest, err := s.newestMeta(ctx)
	if err != nil || newest == 0 {
		return err
	}
	return s.metasTo(ctx, newest, do)
}

// metasTo is eachMeta up to a sequence at least. Any server that has a copy may answer; one that comes back after a time may not have the
// newest yet, and since each has them in order, all are there when the newest is. Else it is errBehind.
func (s *Store) metasTo(ctx context.Context, newest uint64, do func(jetstream.ObjectInfo)) error {
	consumer, err := s.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{metas}, DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy,
	})
	if err != nil {
		return err
	}
	info, err := consumer.Info(ctx)
	if err != nil {
		return err
	}
	if info.NumPending == 0 { // waiting for one would take all of the time
		return errBehind
	}
	messages, err := consumer.Messages()
	if err != nil {
		return err
	}
	defer messages.Stop()
	for {
		m, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return err
		}
		at, err := m.Metadata()
		if err != nil {
			return err
		}
		var info jetstream.ObjectInfo
		if err := json.Unmarshal(m.Data(), &info); err != nil {
			return fmt.Errorf("read %s: %w", m.Subject(), err)
		}
		info.ModTime = at.Timestamp
		do(info)
		switch {
		case at.NumPending > 0:
		case at.Sequence.Stream < newest:
			return errBehind
		default:
			return nil
		}
	}
}

// newestMeta is the sequence of the newest meta, 0 when there is none.
func (s *Store) newestMeta(ctx context.Context) (uint64, error) {
	ctx, cancel := bounded(ctx, 0)
	defer cancel()
	newest, err := projector.Newest(ctx, s.js, objectStream, metas)
	if errors.Is(err, projector.ErrNoMessage) {
		return 0, nil
	}
	return newest, err
}
