package topology

import (
	"context"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// minConsumers is how many consumers NOTEBOOK must be able to have: those of the
// workers, and the tails of about so many processes and readers.
const minConsumers = 32

func checkAccount(ctx context.Context, js jetstream.JetStream, opts Options) error {
	var info *jetstream.AccountInfo
	err := patiently(ctx, js.Conn(), opts, func(ctx context.Context) (err error) {
		info, err = js.AccountInfo(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("ask for the limits of the account: %w", err)
	}
	return CheckAccount(*info, opts)
}

// CheckAccount returns nil if an account of these limits can hold a notebook with
// opts; else an error that wraps ErrAccount and names each limit that is too low.
// Some of them the server would find itself, when half of the topology is there or
// the first tail begins.
func CheckAccount(info jetstream.AccountInfo, opts Options) error {
	opts = opts.withDefaults()
	limits, files := info.Limits, reserved(opts)*int64(opts.Replicas)
	if len(info.Tiers) > 0 { // then the limits count once for all replicas
		name := fmt.Sprintf("R%d", opts.Replicas)
		tier, ok := info.Tiers[name]
		if !ok {
			return fmt.Errorf("%w: it has no limits for %d replicas (no tier %s): add them, or change NATS_REPLICAS", ErrAccount, opts.Replicas, name)
		}
		limits, files = tier.Limits, reserved(opts)
	}
	var faults []string
	want := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	want(limits.MaxStore < 0 || limits.MaxStore >= files, "max_store is %d bytes, must be %d or more, better much more", limits.MaxStore, files)
	want(limits.MaxMemory != 0, "max_mem is 0, but the bucket %s needs a little", BucketProgress)
	want(limits.MaxStreams <= 0 || limits.MaxStreams >= streamCount(opts), "max_streams is %d, must be %d or more", limits.MaxStreams, streamCount(opts))
	want(limits.MaxConsumers <= 0 || limits.MaxConsumers >= minConsumers, "max_consumers is %d, must be %d or more", limits.MaxConsumers, minConsumers)
	want(limits.MaxAckPending <= 0 || limits.MaxAckPending >= maxAckPending, "max_ack_pending is %d, must be %d or more", limits.MaxAckPending, maxAckPending)
	want(limits.StoreMaxStreamBytes <= 0, "disk_max_stream_bytes is %d, but %s must be unlimited", limits.StoreMaxStreamBytes, Notebook)
	want(!limits.MaxBytesRequired, "max_bytes_required is on, but %s must be unlimited", Notebook)
	if len(faults) > 0 {
		return fmt.Errorf("%w: %s", ErrAccount, strings.Join(faults, "; "))
	}
	return nil
}

// reserved is how many bytes the streams with a limit take from the store at once.
func reserved(opts Options) (bytes int64) {
	for _, s := range Streams(opts) {
		bytes += max(0, s.MaxBytes)
	}
	return bytes
}

// streamCount is how many streams there are, with those of the buckets and of the
// object store.
func streamCount(opts Options) int { return len(Streams(opts)) + len(Buckets(opts)) + 1 }

// checkRights publishes to every kind of subject that the services publish to,
// messages that no stream takes: they name another stream as the one that they are
// for. The server says nothing about those that the user may not publish but an
// error on the connection, and whoever published one for a step would wait in vain.
func checkRights(ctx context.Context, nc *nats.Conn) error {
	before := nc.LastError()
	for _, subject := range published() {
		msg := nats.NewMsg(subject)
		msg.Header.Set(jetstream.ExpectedStreamHeader, "factstream_no_such_stream")
		if err := nc.PublishMsg(msg); err != nil {
			return fmt.Errorf("check what may be published: %w", err)
		}
	}
	if err := nc.FlushWithContext(ctx); err != nil { // what was refused is known when this is answered
		return fmt.Errorf("check what may be published: %w", err)
	}
	return violation(nc, before)
}

// published has a subject of each kind.
func published() []string {
	const probe = "probe"
	subjects := []string{TrailSubject(NoThread, probe, 0), DeadSubject(probe), "$O." + StoreArtifacts + ".C." + probe, "$O." + StoreArtifacts + ".M." + probe,
		"$JS.ACK." + Notebook + "." + probe}
	for _, family := range families {
		if family != extFamily { // these are others'
			subjects = append(subjects, Subject(family, probe, NoThread, NoID, 0))
		}
	}
	for _, bucket := range Buckets(Options{}) {
		subjects = append(subjects, KeySubject(bucket.Bucket, probe))
	}
	return subjects
}
