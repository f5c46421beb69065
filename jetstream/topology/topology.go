// Package topology declares the bus: every stream, bucket, object store and
// durable consumer of a notebook, in one table.
package topology

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Streams.
const (
	// Notebook is the truth: every change of every thread, in one order, without
	// a limit of any kind.
	Notebook = "NOTEBOOK"
	// Trail holds every provider event as it comes, for watching live.
	Trail = "TRAIL"
	// Dead holds what a worker could not decode, with the reason.
	Dead = "DEAD"
)

// Buckets and the object store.
const (
	BucketLeases   = "leases"
	BucketReplies  = "replies"
	BucketVectors  = "vectors"
	BucketSettings = "settings"
	BucketProgress = "progress"
	StoreArtifacts = "artifacts"
)

// Durable consumers of the notebook, one for each kind of worker.
const (
	RunsTabstack = "runs-tabstack"
	Autopilot    = "autopilot"
	Distil       = "distil"
	Judge        = "judge"
	Brief        = "brief"
)

// Durable is one row of the table of workers: the consumer's name and the
// subjects it reads.
type Durable struct {
	Name    string
	Filters []string
}

// retried is read by every worker: a retry names its stage in its body, so each
// worker acknowledges those that are not its own.
const retried = "stage.retried.>"

// Durables returns the table of workers. The read-only user is denied every one
// of them, so a new worker is added here and nowhere else.
func Durables() []Durable {
	return []Durable{
		{RunsTabstack, []string{"run.requested.>", retried}},
		{Autopilot, []string{"thread.settled.>", retried}},
		{Distil, []string{"run.completed.>", retried}},
		{Judge, []string{"facts.distilled.>", retried}},
		{Brief, []string{"contradictions.found.>", "run.failed.>", "stage.failed.>", retried}},
	}
}

// Defaults of Options.
const (
	DefaultAckWait       = 15 * time.Second
	DefaultLeaseTTL      = 15 * time.Second
	DefaultTrailMaxBytes = 256 << 20 // reserved: a store smaller than this needs another choice
	DefaultTrailMaxAge   = 24 * time.Hour
)

const (
	maxAckPending = 10_000 // attempts are counted in state, so nothing but memory limits this
	replyTTL      = 7 * 24 * time.Hour
	progressTTL   = time.Minute
	deadMaxBytes  = 32 << 20
)

// Options are what an operator may choose about the bus. Zero values mean the
// defaults.
type Options struct {
	Replicas      int           // copies of everything, 1 to 5; more than one needs that many servers
	AckWait       time.Duration // a worker silent for this long loses its message
	LeaseTTL      time.Duration // a lease not renewed for this long is free
	TrailMaxBytes int64         // the oldest trail events go beyond this
	TrailMaxAge   time.Duration
}

func (o Options) withDefaults() Options {
	o.Replicas = max(o.Replicas, 1)
	if o.AckWait <= 0 {
		o.AckWait = DefaultAckWait
	}
	if o.LeaseTTL <= 0 {
		o.LeaseTTL = DefaultLeaseTTL
	}
	if o.TrailMaxBytes <= 0 {
		o.TrailMaxBytes = DefaultTrailMaxBytes
	}
	if o.TrailMaxAge <= 0 {
		o.TrailMaxAge = DefaultTrailMaxAge
	}
	return o
}

// What Declare refuses. Each error says in one line what was found and what to
// set.
var (
	// ErrNotebook: the stream NOTEBOOK exists in a form that could lose or reorder
	// events. The error names every fault.
	ErrNotebook = errors.New("the stream NOTEBOOK cannot be trusted as it is configured")
	// ErrReplicas: there are fewer servers than replicas are asked for, or fewer are
	// asked for than there are.
	ErrReplicas = errors.New("the number of replicas does not fit")
	// ErrAccount: the limits of the account, or of the server, leave no room for a
	// notebook.
	ErrAccount = errors.New("the limits of the NATS account do not fit")
	// ErrRights: the user may not publish what the services publish.
	ErrRights = errors.New("the NATS user may not do what the services do")
	// ErrTaken: another stream of the account takes subjects of the notebook.
	ErrTaken = errors.New("another stream of the account takes the notebook's subjects")
)

// declareTimeout bounds Declare for a caller that sets no bound.
const declareTimeout = time.Minute

// Declare creates the whole topology, or updates what is there to match opts. It
// is idempotent and may run in several processes at once. While a cluster elects,
// or a server is away that is needed, it tries again until ctx ends.
//
// A NOTEBOOK that exists is checked, never silently changed in what makes it the
// truth: the error then wraps ErrNotebook, or ErrUnfinishedRestore. More replicas
// than there are become as many, of streams, buckets and consumers; fewer are
// refused (ErrReplicas), since one process with an old setting would take the
// copies of all. Other errors wrap ErrAccount, ErrRights or ErrTaken.
func Declare(ctx context.Context, js jetstream.JetStream, opts Options) error {
	opts = opts.withDefaults()
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, declareTimeout)
		defer cancel()
	}
	if err := checkAccount(ctx, js, opts); err != nil {
		return err
	}
	if err := patiently(ctx, js.Conn(), opts, func(ctx context.Context) error { return declareNotebook(ctx, js, opts) }); err != nil {
		return err
	}
	for _, cfg := range Streams(opts)[1:] {
		err := patiently(ctx, js.Conn(), opts, func(ctx context.Context) error {
			_, err := js.CreateOrUpdateStream(ctx, cfg)
			return err
		})
		if err != nil {
			return fmt.Errorf("declare stream %s: %w", cfg.Name, err)
		}
	}
	for _, cfg := range Buckets(opts) {
		err := patiently(ctx, js.Conn(), opts, func(ctx context.Context) error {
			_, err := js.CreateOrUpdateKeyValue(ctx, cfg)
			return err
		})
		if err != nil {
			return fmt.Errorf("declare bucket %s: %w", cfg.Bucket, err)
		}
	}
	err := patiently(ctx, js.Conn(), opts, func(ctx context.Context) error {
		_, err := js.CreateOrUpdateObjectStore(ctx, artifacts(opts))
		return err
	})
	if err != nil {
		return fmt.Errorf("declare object store %s: %w", StoreArtifacts, err)
	}
	for _, d := range Durables() {
		err := patiently(ctx, js.Conn(), opts, func(ctx context.Context) error {
			_, err := js.CreateOrUpdateConsumer(ctx, Notebook, d.Config(opts))
			return err
		})
		if err != nil {
			return fmt.Errorf("declare consumer %s: %w", d.Name, err)
		}
	}
	return checkRights(ctx, js.Conn())
}

// Streams returns the configuration of every stream, NOTEBOOK first.
func Streams(opts Options) []jetstream.StreamConfig {
	opts = opts.withDefaults()
	return []jetstream.StreamConfig{
		{
			Name:               Notebook,
			Description:        "Every change of every thread: the truth. No limits.",
			Subjects:           notebookSubjects(),
			Retention:          jetstream.LimitsPolicy,
			Storage:            jetstream.FileStorage,
			Replicas:           opts.Replicas,
			MaxConsumers:       -1,
			MaxMsgs:            -1,
			MaxBytes:           -1,
			MaxMsgsPerSubject:  -1,
			MaxMsgSize:         -1,
			AllowAtomicPublish: true,
			AllowDirect:        true,
		},
		{
			Name:         Trail,
			Description:  "Provider events as they come, for watching live.",
			Subjects:     []string{trailSubjects},
			Retention:    jetstream.LimitsPolicy,
			Storage:      jetstream.FileStorage,
			Discard:      jetstream.DiscardOld,
			Replicas:     opts.Replicas,
			MaxConsumers: -1,
			MaxMsgs:      -1,
			MaxBytes:     opts.TrailMaxBytes,
			MaxAge:       opts.TrailMaxAge,
			AllowDirect:  true,
		},
		{
			Name:         Dead,
			Description:  "Messages that a worker could not decode, with the reason.",
			Subjects:     []string{deadSubjects},
			Retention:    jetstream.LimitsPolicy,
			Storage:      jetstream.FileStorage,
			Discard:      jetstream.DiscardOld,
			Replicas:     opts.Replicas,
			MaxConsumers: -1,
			MaxMsgs:      -1,
			MaxBytes:     deadMaxBytes,
			AllowDirect:  true,
		},
	}
}

// Buckets returns the configuration of every key-value bucket.
func Buckets(opts Options) []jetstream.KeyValueConfig {
	opts = opts.withDefaults()
	file := func(name, description string, ttl time.Duration) jetstream.KeyValueConfig {
		return jetstream.KeyValueConfig{
			Bucket: name, Description: description, TTL: ttl, History: 1,
			Storage: jetstream.FileStorage, Replicas: opts.Replicas, MaxBytes: -1, MaxValueSize: -1,
		}
	}
	progress := file(BucketProgress, "What each step is doing now; missing means pending.", progressTTL)
	progress.Storage = jetstream.MemoryStorage
	return []jetstream.KeyValueConfig{
		// The TTL is the bucket's, since an Update drops a key's own.
		file(BucketLeases, "Single-permit leases.", opts.LeaseTTL),
		file(BucketReplies, "Replies of models, kept before they are used.", replyTTL),
		file(BucketVectors, "Embeddings by content; a cache.", 0),
		file(BucketSettings, "What a person has set.", 0),
		progress,
	}
}

func artifacts(opts Options) jetstream.ObjectStoreConfig {
	return jetstream.ObjectStoreConfig{
		Bucket: StoreArtifacts, Description: "Bulky fields and raw provider answers, by sha256.",
		Storage: jetstream.FileStorage, Replicas: opts.Replicas, MaxBytes: -1,
	}
}

// Config returns the consumer's configuration: explicit acknowledgement, delivery
// from the beginning, no limit of deliveries and no back-off, because a step's
// attempts are counted in state and not by the bus.
func (d Durable) Config(opts Options) jetstream.ConsumerConfig {
	opts = opts.withDefaults()
	return jetstream.ConsumerConfig{
		Durable:        d.Name,
		FilterSubjects: d.Filters,
		DeliverPolicy:  jetstream.DeliverAllPolicy,
		AckPolicy:      jetstream.AckExplicitPolicy,
		AckWait:        opts.AckWait,
		MaxDeliver:     -1,
		MaxAckPending:  maxAckPending,
		ReplayPolicy:   jetstream.ReplayInstantPolicy,
	}
}

func declareNotebook(ctx context.Context, js jetstream.JetStream, opts Options) error {
	want := Streams(opts)[0]
	stream, err := js.Stream(ctx, Notebook)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = js.CreateStream(ctx, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another process was faster, and chose otherwise
			stream, err = js.Stream(ctx, Notebook)
		}
	}
	if err != nil {
		return fmt.Errorf("declare stream %s: %w", Notebook, err)
	}
	have := stream.CachedInfo().Config
	if err := CheckNotebook(have); err != nil {
		return err
	}
	if _, unfinished := have.Metadata[MetaUnfinished]; unfinished {
		return ErrUnfinishedRestore
	}
	if want.Replicas < have.Replicas {
		return fmt.Errorf("%w: the stream %s has %d replicas, %d are asked for: set NATS_REPLICAS=%d, or, to have fewer, first run: nats stream edit %s --replicas %d",
			ErrReplicas, Notebook, have.Replicas, want.Replicas, have.Replicas, Notebook, want.Replicas)
	}
	update := have // what an operator added (placement, compression, metadata) stays
	update.Replicas = want.Replicas
	for _, s := range want.Subjects {
		if !slices.Contains(update.Subjects, s) {
			update.Subjects = append(slices.Clone(update.Subjects), s)
		}
	}
	if update.Replicas == have.Replicas && len(update.Subjects) == len(have.Subjects) {
		return nil
	}
	if _, err := js.UpdateStream(ctx, update); err != nil {
		return fmt.Errorf("update stream %s: %w", Notebook, err)
	}
	return nil
}

// CheckNotebook returns nil if cfg keeps every event for ever, in order, and
// takes atomic batches; else an error that wraps ErrNotebook and names all that
// is wrong and what is wanted instead.
func CheckNotebook(cfg jetstream.StreamConfig) error {
	var faults []string
	want := func(ok bool, format string, args ...any) {
		if !ok {
			faults = append(faults, fmt.Sprintf(format, args...))
		}
	}
	want(cfg.Retention == jetstream.LimitsPolicy, "retention is %v, must be limits", cfg.Retention)
	want(cfg.Storage == jetstream.FileStorage, "storage is %v, must be file", cfg.Storage)
	want(cfg.MaxMsgs <= 0, "max messages is %d, must be unlimited", cfg.MaxMsgs)
	want(cfg.MaxBytes <= 0, "max bytes is %d, must be unlimited", cfg.MaxBytes)
	want(cfg.MaxAge == 0, "max age is %v, must be unlimited", cfg.MaxAge)
	want(cfg.MaxMsgsPerSubject <= 0, "max messages per subject is %d, must be unlimited", cfg.MaxMsgsPerSubject)
	want(cfg.MaxMsgSize <= 0, "max message size is %d, must be unlimited", cfg.MaxMsgSize)
	want(cfg.MaxConsumers <= 0, "max consumers is %d, must be unlimited", cfg.MaxConsumers)
	want(cfg.AllowAtomicPublish, "atomic publish is off, must be on")
	want(cfg.AllowDirect, "direct get is off, must be on")
	want(cfg.PersistMode != jetstream.AsyncPersistMode, "persist mode is async, must be default")
	want(!cfg.NoAck, "acknowledgements of publishes are off, must be on")
	want(!cfg.Sealed, "it is sealed")
	want(!cfg.DenyPurge, "purging is denied, but deleting a thread needs it")
	want(!cfg.AllowRollup, "rollup is allowed, but erases events")
	want(!cfg.AllowMsgTTL, "message TTLs are allowed, but erase events")
	want(cfg.Mirror == nil && len(cfg.Sources) == 0, "it mirrors or sources another stream")
	want(cfg.SubjectTransform == nil, "it transforms subjects")
	want(!cfg.AllowMsgCounter, "it counts, and takes no events, must not be a counter")
	want(!cfg.AllowMsgSchedules, "message schedules are allowed, but erase events")
	most := cfg.ConsumerLimits.MaxAckPending
	want(most <= 0 || most >= maxAckPending, "its limit of max ack pending is %d, must be %d or more", most, maxAckPending)
	want(cfg.ConsumerLimits.InactiveThreshold == 0, "its limit of inactive threshold is %v, must be none", cfg.ConsumerLimits.InactiveThreshold)
	for _, subject := range cfg.Subjects { // one of a family that a later version added is sound
		want(isFamily(subject), "it takes the subject %s, but holds events only: <family>.*.*.*.*", subject)
	}
	if len(faults) > 0 {
		return fmt.Errorf("%w: %s", ErrNotebook, strings.Join(faults, "; "))
	}
	return nil
}
