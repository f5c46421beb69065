package batch_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// claim is what each message of the order test says of itself: which append it is part of and what that was decided on.
type claim struct {
	ID      string `json:"id"` // of the append: the same however often it was tried
	Thread  string `json:"thread"`
	At      int    `json:"at"`      // 0 is the first message of the append
	Size    int    `json:"size"`    // messages of the append
	Decided uint64 `json:"decided"` // the sequence that was believed to be the thread's last
}

// stored is a message as the stream has it.
type stored struct {
	seq uint64
	claim
}

// audit compares a whole stream with what its writers were told, accepted: the append's id and the sequence of its last message. It returns what is wrong, nothing if
// every append is there once, whole and in one piece, each was decided on what then was the last of its thread, and nobody was told otherwise.
func audit(stream []stored, accepted map[string]uint64) (faults []string) {
	found := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	last := map[string]uint64{}  // of each thread
	parts := map[uint64]string{} // what stands at each sequence
	ends := map[string]uint64{}  // of each append
	for i, m := range stream {
		switch {
		case m.At == 0:
			if _, twice := ends[m.ID]; twice {
				found("%s at %d is there twice", m.ID, m.seq)
			}
			if m.Decided != last[m.Thread] {
				found("%s at %d is stale: decided on %d, %s, the last was %d, %s", m.ID, m.seq, m.Decided, parts[m.Decided], last[m.Thread], parts[last[m.Thread]])
			}
		case i == 0 || stream[i-1].ID != m.ID || stream[i-1].At != m.At-1 || stream[i-1].seq != m.seq-1:
			found("%s at %d is torn: part %d does not follow the one before", m.ID, m.seq, m.At)
		}
		if whole := m.At == m.Size-1; !whole && (i == len(stream)-1 || stream[i+1].ID != m.ID) {
			found("%s at %d is torn: it ends with part %d of %d", m.ID, m.seq, m.At, m.Size)
		}
		parts[m.seq] = fmt.Sprintf("part %d of %d of %s", m.At+1, m.Size, m.ID)
		last[m.Thread], ends[m.ID] = m.seq, m.seq
	}
	for id, seq := range accepted {
		if ends[id] != seq {
			found("%s was accepted at %d, but is at %d", id, seq, ends[id])
		}
	}
	for id := range ends {
		if _, known := accepted[id]; !known {
			found("%s is there, but its writer does not know", id)
		}
	}
	slices.Sort(faults)
	return faults
}

func TestTheAuditFindsEachFault(t *testing.T) {
	t.Parallel()
	sound := []stored{
		{1, claim{"a", "t", 0, 1, 0}},
		{2, claim{"b", "u", 0, 1, 0}},
		{3, claim{"c", "t", 0, 2, 1}},
		{4, claim{"c", "t", 1, 2, 1}},
		{5, claim{"d", "t", 0, 1, 4}},
	}
	accepted := map[string]uint64{"a": 1, "b": 2, "c": 4, "d": 5}
	require.Empty(t, audit(sound, accepted))
	for name, spoil := range map[string]func(s []stored, a map[string]uint64) []stored{
		"stale":             func(s []stored, _ map[string]uint64) []stored { s[4].Decided = 1; return s },
		"twice":             func(s []stored, _ map[string]uint64) []stored { return append(s, stored{6, claim{"b", "u", 0, 1, 2}}) },
		"torn":              func(s []stored, _ map[string]uint64) []stored { return slices.Delete(s, 2, 3) },
		"ends with part":    func(s []stored, _ map[string]uint64) []stored { return slices.Delete(s, 3, 4) },
		"accepted at 2":     func(s []stored, _ map[string]uint64) []stored { return slices.Delete(s, 1, 2) },
		"accepted at 6":     func(s []stored, a map[string]uint64) []stored { a["d"] = 6; return s },
		"does not know":     func(s []stored, a map[string]uint64) []stored { delete(a, "b"); return s },
		"part 1 does not f": func(s []stored, _ map[string]uint64) []stored { s[3].seq, s[4].seq = 5, 6; return s },
	} {
		known := map[string]uint64{}
		for id, seq := range accepted {
			known[id] = seq
		}
		faults := audit(spoil(slices.Clone(sound), known), known)
		require.Contains(t, strings.Join(faults, "\n"), name)
	}
}
