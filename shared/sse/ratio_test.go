package sse

import (
	"bytes"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// largeSizes are data lengths of one event, below and above where Data is copied out instead of handed over.
var largeSizes = []int{64 << 10, 1 << 20, 2 << 20, MaxEvent/3 - 1, MaxEvent/3 + 1, 8 << 20, 9 << 20, MaxEvent}

// However large an event grows, growing copies no more of it than what doubles in the beginning, and takes no more new
// memory than that and room for the largest event. Both are counted, so this holds on any machine. (Not parallel: the
// memory is counted for the whole process.)
func TestALargeEventIsNotCopiedAgainAndAgainAsItGrows(t *testing.T) {
	const grown = 3*wholeRoomAbove + 64<<10 // what doubling adds up to
	for _, n := range largeSizes {
		stream := one(n)
		copiedOut := int64(0)
		if n > wholeRoomAbove && n < MaxEvent/3 {
			copiedOut = int64(n)
		}
		var took uint64 = 1 << 62
		for range 3 { // something else in the process may allocate as well
			var before, after runtime.MemStats
			wholeRooms.Get() // as in a process that has seen no large event before
			runtime.ReadMemStats(&before)
			d := feed(t, stream, 512)
			runtime.ReadMemStats(&after)
			took = min(took, after.TotalAlloc-before.TotalAlloc)
			require.LessOrEqual(t, d.work, 4*int64(n)+grown+copiedOut+64, "%d bytes: looked for LF and CR, taken, checked", n)
		}
		most := int64(grown+wholeRoomAbove) + copiedOut
		if n > wholeRoomAbove {
			most += MaxEvent
		}
		require.LessOrEqual(t, int64(took), most, "%d bytes", n)
	}
}

// The clock adds to TestWorkIsLinear and to the test above what they do not count: what memory costs to get, to clear and
// to collect. 2 MiB against 8 MiB, each one event in pieces of 512 bytes; a decoder that scans its buffer again at every
// piece takes sixteen times as long. Only the longer one has to get new room. A busy machine only ever adds time, so
// the least of several turns counts, and turns go on until there is a clear margin, or were a hundred.
func TestFourTimesTheLengthTakesLessThanSixTimesAsLong(t *testing.T) {
	short, long := one(2<<20), one(8<<20)
	least := func(before time.Duration, stream []byte) time.Duration {
		start := time.Now()
		feed(t, stream, 512)
		return min(before, time.Since(start))
	}
	shortest, longest := time.Hour, time.Hour
	for turn := range 100 {
		feed(t, short, 512) // leaves its room to the next
		shortest = least(shortest, short)
		wholeRooms.Get()
		longest = least(longest, long)
		if turn >= 4 && longest < 4*shortest {
			break
		}
	}
	t.Logf("2 MiB: %s, 8 MiB: %s, %.2f times as long", shortest, longest, float64(longest)/float64(shortest))
	require.Less(t, longest, 6*shortest)
}

func TestTheMemoryOfALargeEventIsGivenBack(t *testing.T) {
	const n = 3 << 20
	long := bytes.Repeat([]byte("x"), n)
	for name, stream := range map[string][]byte{
		"copied out":      one(n),
		"handed over":     one(8 << 20),
		"invalid UTF-8":   append(append([]byte("data: \xff"), long...), '\n', '\n'),
		"a long name":     append(append([]byte("event: "), long...), "\ndata: x\n\n"...),
		"a name, no data": append(append([]byte("event: "), long...), "\n\n"...),
		"a long id":       append(append([]byte("id: "), long...), "\ndata: x\n\n"...),
		"a long retry":    append(append([]byte("retry: "), long...), '\n'),
	} {
		for _, size := range []int{512, len(stream)} {
			d := feed(t, stream, size)
			for _, held := range [][]byte{d.data, d.value, d.name} {
				require.LessOrEqual(t, cap(held), keepBuffer, "%s in pieces of %d", name, size)
			}
		}
	}
	runtime.GC()
	runtime.GC()
	require.Nil(t, wholeRooms.Get(), "room that nobody used goes as well")
}

// Rooms are used again: what was handed out before stays as it was, and is not much larger than its data.
func TestLargeDataIsTheCallersToKeep(t *testing.T) {
	for _, n := range largeSizes {
		var d Decoder
		var got []Event
		for _, fill := range []string{"a", "b", "c"} {
			for _, piece := range split(append([]byte("data: "), bytes.Repeat([]byte(fill), n)...), 32<<10) {
				_, err := d.Feed(piece)
				require.NoError(t, err)
			}
			events, err := d.Feed([]byte("\n\n"))
			require.NoError(t, err)
			got = append(got, events...)
		}
		require.Len(t, got, 3)
		for i, fill := range []string{"a", "b", "c"} {
			require.Len(t, got[i].Data, n)
			require.Equal(t, n, bytes.Count(got[i].Data, []byte(fill)), "%d bytes, event %d", n, i)
			require.LessOrEqual(t, cap(got[i].Data), 3*n+3)
		}
	}
}
