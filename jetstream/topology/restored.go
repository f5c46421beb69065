package topology

import (
	"errors"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

// A restored message is a copy: the stream gives it a sequence and a time of its own. What it had in the stream where it was first
// stored stands in these headers.
const (
	headerOriginalSeq  = "Factstream-Original-Seq"
	headerOriginalTime = "Factstream-Original-Time"
)

// Keys in the metadata of the stream NOTEBOOK.
const (
	// MetaBegins is there when the stream was restored: its first sequence, in digits. Every sequence below it is one
	// of the notebook's earlier streams.
	MetaBegins = "factstream_begins"
	// MetaUnfinished is there from the beginning of a restore to its end.
	MetaUnfinished = "factstream_restore_unfinished"
)

// ErrUnfinishedRestore is returned by Declare when a restore into this place was cut short. What is there is a part of a notebook.
var ErrUnfinishedRestore = errors.New("a restore was cut short: only a part of the notebook is there; run the restore again")

// Original gives the sequence and time that a message had in the stream where it was first stored: those in its headers,
// or its own, seq and at, when it was never restored.
func Original(header nats.Header, seq uint64, at time.Time) (uint64, time.Time) {
	if first, err := strconv.ParseUint(header.Get(headerOriginalSeq), 10, 64); err == nil {
		seq = first
	}
	if first, err := time.Parse(time.RFC3339Nano, header.Get(headerOriginalTime)); err == nil {
		at = first
	}
	return seq, at
}

// SetOriginal puts the sequence and time of a message that is restored into its header.
func SetOriginal(header nats.Header, seq uint64, at time.Time) {
	header.Set(headerOriginalSeq, strconv.FormatUint(seq, 10))
	header.Set(headerOriginalTime, at.UTC().Format(time.RFC3339Nano))
}

// IsOriginal says whether a header is one of those that SetOriginal sets.
func IsOriginal(name string) bool { return name == headerOriginalSeq || name == headerOriginalTime }

// Begins is the first sequence of a restored notebook, from the metadata of its stream; 0 when it was never restored.
func Begins(metadata map[string]string) uint64 {
	seq, err := strconv.ParseUint(metadata[MetaBegins], 10, 64)
	if err != nil {
		return 0
	}
	return seq
}
