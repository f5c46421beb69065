package sse

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures"
)

// seen is an event with the piece that completed it.
type seen struct {
	Event
	piece int
}

// decode feeds the pieces one by one and returns the events, and what Finish adds.
func decode(t testing.TB, pieces ...[]byte) (events []seen, flushed []Event, d *Decoder) {
	t.Helper()
	d = new(Decoder)
	for i, p := range pieces {
		got, err := d.Feed(p)
		require.NoError(t, err)
		for _, e := range got {
			events = append(events, seen{Event: e, piece: i})
		}
	}
	flushed, err := d.Finish()
	require.NoError(t, err)
	return events, flushed, d
}

// streams returns the vectors that are event streams as the decoder gets them (a compressed one is unpacked before).
func streams(t *testing.T) []fixtures.Vector {
	t.Helper()
	all, err := fixtures.Vectors()
	require.NoError(t, err)
	var out []fixtures.Vector
	for _, v := range all {
		if v.Headers["Content-Encoding"] == "gzip" {
			r, err := gzip.NewReader(bytes.NewReader(v.Bytes()))
			require.NoError(t, err)
			plain, err := io.ReadAll(r)
			require.NoError(t, err)
			v.Chunks = [][]byte{plain}
			for i := range v.Expect {
				v.Expect[i].ByChunk = 0
			}
		}
		if v.Layer != fixtures.LayerHTTP || len(v.Expect) > 0 {
			out = append(out, v)
		}
	}
	require.Greater(t, len(out), 45)
	return out
}

func requireExpected(t *testing.T, v fixtures.Vector, got []seen) {
	t.Helper()
	require.Len(t, got, len(v.Expect), v.ID)
	for i, want := range v.Expect {
		require.Equal(t, want.Event, got[i].Name, v.ID)
		require.Equal(t, want.ID, got[i].ID, v.ID)
		require.False(t, got[i].Unterminated, v.ID)
		if want.DataLen > 0 {
			require.Len(t, got[i].Data, want.DataLen, v.ID)
			sum := sha256.Sum256(got[i].Data)
			require.Equal(t, want.DataSHA256, hex.EncodeToString(sum[:]), v.ID)
			continue
		}
		require.Equal(t, *want.Data, string(got[i].Data), v.ID)
	}
}

func TestVectorsInTheirOwnChunks(t *testing.T) {
	t.Parallel()
	for _, v := range streams(t) {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			got, flushed, d := decode(t, v.Chunks...)
			requireExpected(t, v, got)
			for i, want := range v.Expect {
				require.LessOrEqual(t, got[i].piece, want.ByChunk, "event %d came too late", i)
			}
			if v.Flush != nil {
				require.Len(t, flushed, 1)
				require.Equal(t, v.Flush.Event, flushed[0].Name)
				require.Equal(t, *v.Flush.Data, string(flushed[0].Data))
				require.True(t, flushed[0].Unterminated)
			}
			retry, asked := d.Retry()
			require.Equal(t, v.RetryMillis > 0, asked)
			require.Equal(t, time.Duration(v.RetryMillis)*time.Millisecond, retry)
			require.Equal(t, int64(len(v.Bytes())), d.Bytes())
		})
	}
}

func TestVectorsWhereverTheyAreCut(t *testing.T) {
	t.Parallel()
	for _, v := range streams(t) {
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			all := v.Bytes()
			_, wantFlushed, _ := decode(t, all)
			whole, _, _ := decode(t, all)
			requireExpected(t, v, whole)
			check := func(pieces ...[]byte) {
				got, flushed, _ := decode(t, pieces...)
				if !same(events(whole), events(got)) || !same(wantFlushed, flushed) {
					requireExpected(t, v, got)
					require.Equal(t, wantFlushed, flushed, v.ID)
				}
			}
			if len(all) <= 4<<10 {
				for cut := 0; cut <= len(all); cut++ {
					check(all[:cut], all[cut:])
				}
				check(split(all, 1)...)
				return
			}
			random := rand.New(rand.NewPCG(1, uint64(len(all))))
			for range 200 {
				cut := random.IntN(len(all) + 1)
				check(all[:cut], all[cut:])
			}
			check(split(all, 512)...)
		})
	}
}

func TestRecordedStreamsAreTheSameInAnyPieces(t *testing.T) {
	t.Parallel()
	for _, name := range fixtures.Streams() {
		provider, mode, _ := strings.Cut(name, "/")
		all, err := fixtures.Stream(provider, mode)
		require.NoError(t, err)
		whole, wholeFlushed, _ := decode(t, all)
		for _, size := range []int{1, 2, 3, 7, 512, 4096} {
			got, flushed, d := decode(t, split(all, size)...)
			require.Equal(t, events(whole), events(got), name)
			require.Equal(t, wholeFlushed, flushed, name)
			require.Equal(t, int64(bytes.Count(all, []byte("\n:"))), d.Comments(), name)
		}
	}
}

func TestGrammar(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		want     []Event
	}{
		{"only one space after the colon is dropped", "data:  x \n\n", []Event{{Name: "message", Data: []byte(" x ")}}},
		{"a tab is kept", "data:\tx\n\n", []Event{{Name: "message", Data: []byte("\tx")}}},
		{"the last name counts", "event: a\nevent: b\ndata: x\n\n", []Event{{Name: "b", Data: []byte("x")}}},
		{"a name without data is forgotten", "event: a\n\ndata: x\n\n", []Event{{Name: "message", Data: []byte("x")}}},
		{"a longer field name is unknown", "data2: x\ndatab\neventful: y\n\n", nil},
		{"a shorter field name is unknown", "dat: x\n\n", nil},
		{"field names are case sensitive", "Data: x\n\n", nil},
		{"data without colon is an empty line of data", "data\ndata\n\n", []Event{{Name: "message", Data: []byte("\n")}}},
		{"an id without data stays for later events", "id: 9\n\ndata: x\n\n", []Event{{Name: "message", Data: []byte("x"), ID: "9"}}},
		{"a comment between fields changes nothing", "event: a\n: hm\ndata: x\n\n", []Event{{Name: "a", Data: []byte("x")}}},
		{"two marks: the second is data", "\xef\xbb\xbf\xef\xbb\xbfdata: x\n\n", nil},
		{"half a mark is data", "\xef\xbbdata: x\n\ndata: y\n\n", []Event{{Name: "message", Data: []byte("y")}}},
		{"an invalid name", "event: a\xff\ndata: x\n\n", []Event{{Name: "a\uFFFD", Data: []byte("x")}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, pieces := range [][][]byte{{[]byte(c.in)}, split([]byte(c.in), 1)} {
				got, flushed, _ := decode(t, pieces...)
				require.Equal(t, c.want, events(got))
				require.Empty(t, flushed)
			}
		})
	}
}

func TestFinish(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		want     []Event
	}{
		{"nothing", "", nil},
		{"only a half mark", "\xef\xbb", nil},
		{"a name without data", "event: complete\n", nil},
		{"cut in the data", "data: {\"a", []Event{{Name: "message", Data: []byte(`{"a`), Unterminated: true}}},
		{"cut after a data line, in the next field's name", "data: {}\ndat", []Event{{Name: "message", Data: []byte("{}"), Unterminated: true}}},
		{"cut after the field name, before its colon", "data: {}\ndata", []Event{{Name: "message", Data: []byte("{}"), Unterminated: true}}},
		{"cut inside CRLF", "data: {}\r", []Event{{Name: "message", Data: []byte("{}"), Unterminated: true}}},
		{"cut in a name", "data: {}\nevent: comp", []Event{{Name: "comp", Data: []byte("{}"), Unterminated: true}}},
		{"cut in a comment", "data: {}\n: k", []Event{{Name: "message", Data: []byte("{}"), Unterminated: true}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, flushed, d := decode(t, []byte(c.in))
			require.Empty(t, got)
			require.Equal(t, c.want, flushed)

			again, err := d.Finish()
			require.NoError(t, err)
			require.Empty(t, again, "finishing twice delivers once")
			_, err = d.Feed([]byte("data: x\n\n"))
			require.ErrorIs(t, err, ErrFinished)
		})
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]time.Duration{
		"retry: 10\n":                                10 * time.Millisecond,
		"retry:0\n":                                  0,
		"retry: 10\nretry: 20\n":                     20 * time.Millisecond,
		"retry: 10\nretry: 2x\n":                     10 * time.Millisecond,
		"retry: 10\nretry\n":                         10 * time.Millisecond,
		"retry: 10\nretry: -1\n":                     10 * time.Millisecond,
		"retry: 10\nretry: 1e400 \n":                 10 * time.Millisecond,
		"retry: 7\nretry: 99999999999999999999999\n": 7 * time.Millisecond,
	} {
		_, _, d := decode(t, []byte(in))
		got, asked := d.Retry()
		require.True(t, asked, in)
		require.Equal(t, want, got, in)
	}
}

func TestInvalidUTF8BecomesOneReplacementPerBrokenSequence(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"a\xffb":               "a\uFFFDb",
		"\xff\xff":             "\uFFFD\uFFFD",
		"\xf0\x9f":             "\uFFFD",
		"\xf0\x9f\x94z":        "\uFFFDz",
		"\xe2\x82":             "\uFFFD",
		"\xe2\x28\xa1":         "\uFFFD(\uFFFD",
		"\xc0\x80":             "\uFFFD\uFFFD",
		"\xed\xa0\x80":         "\uFFFD\uFFFD\uFFFD",
		"\xe0\x80\x80":         "\uFFFD\uFFFD\uFFFD",
		"\xf4\x90\x80\x80":     "\uFFFD\uFFFD\uFFFD\uFFFD",
		"\xf0\x80\x80\x80":     "\uFFFD\uFFFD\uFFFD\uFFFD",
		"\xc3\xc3\x9f":         "\uFFFDß",
		"\uFFFD and \xe2\x82z": "\uFFFD and \uFFFDz",
	} {
		got, _, _ := decode(t, []byte("data: "+in+"\n\n"))
		require.Len(t, got, 1)
		require.Equal(t, want, string(got[0].Data), "%q", in)
	}
}

func TestAnEventOverTheLimitIsANamedError(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte("x"), MaxEvent)
	for name, c := range map[string]struct {
		pieces [][]byte
		fits   bool
	}{
		"exactly the limit":            {[][]byte{[]byte("data: "), long, []byte("\n\n")}, true},
		"one more":                     {[][]byte{[]byte("data: "), long, []byte("x\n\n")}, false},
		"over many lines":              {[][]byte{bytes.Repeat(append([]byte("data: "), append(long[:4095:4095], '\n')...), MaxEvent/4096+1)}, false},
		"empty lines of data":          {[][]byte{[]byte("data: "), long[2:], bytes.Repeat([]byte("\ndata"), 4)}, false},
		"a name without end":           {[][]byte{[]byte("event: "), long, []byte("x")}, false},
		"an id without end":            {[][]byte{[]byte("id: "), long, []byte("x")}, false},
		"a comment without end":        {[][]byte{[]byte(": "), long, long, []byte("\ndata: ok\n\n")}, true},
		"an unknown field without end": {[][]byte{[]byte("else: "), long, long, []byte("\ndata: ok\n\n")}, true},
		"many events":                  {[][]byte{[]byte("data: "), long[:MaxEvent/2], []byte("\n\ndata: "), long[MaxEvent/2-1:], []byte("\n\n")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := new(Decoder)
			got, err := d.Feed([]byte("data: before\n\n"))
			require.NoError(t, err)
			require.Len(t, got, 1)
			for _, p := range c.pieces {
				if _, err = d.Feed(p); err != nil {
					break
				}
			}
			if c.fits {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrEventTooLarge)
			_, err = d.Feed([]byte("\n\ndata: after\n\n"))
			require.ErrorIs(t, err, ErrEventTooLarge, "the stream cannot be read on")
			_, err = d.Finish()
			require.ErrorIs(t, err, ErrEventTooLarge)
		})
	}
}

func TestEventsBeforeOneThatIsTooLargeAreDelivered(t *testing.T) {
	t.Parallel()
	d := new(Decoder)
	got, err := d.Feed(append([]byte("data: first\n\ndata: "), bytes.Repeat([]byte("x"), MaxEvent+1)...))
	require.ErrorIs(t, err, ErrEventTooLarge)
	require.Len(t, got, 1)
	require.Equal(t, "first", string(got[0].Data))
}

func TestDataIsTheCallersToKeep(t *testing.T) {
	t.Parallel()
	d := new(Decoder)
	for _, size := range []int{3, copyBelow + 1} {
		in := []byte("data: " + strings.Repeat("a", size) + "\n\n")
		first, err := d.Feed(in)
		require.NoError(t, err)
		in[6] = 'X'
		_, err = d.Feed([]byte("data: " + strings.Repeat("b", size) + "\n\n"))
		require.NoError(t, err)
		require.Equal(t, strings.Repeat("a", size), string(first[0].Data))
	}
}

// The decoder counts the bytes that it looks at or copies. Whatever the pieces and the line ends, the count stays under
// a fixed multiple of the stream's length.
func TestWorkIsLinear(t *testing.T) {
	t.Parallel()
	const limit = 6
	for name, stream := range map[string][]byte{
		"one long line":       one(1 << 20),
		"lines ending in LF":  bytes.Repeat([]byte("data: 0123456789\n\n"), 1<<12),
		"lines ending in CR":  bytes.Repeat([]byte("data: 0123456789\r\r"), 1<<12),
		"CRLF":                bytes.Repeat([]byte("data: 0123456789\r\n\r\n"), 1<<12),
		"CR, one LF at end":   append(bytes.Repeat([]byte("data: 1\r\r"), 1<<12), '\n'),
		"LF, one CR at end":   append(bytes.Repeat([]byte("data: 1\n\n"), 1<<12), '\r'),
		"one event, no end":   bytes.Repeat([]byte("data: 0123456789\n"), 1<<14),
		"blank lines":         bytes.Repeat([]byte("\n"), 1<<16),
		"comments":            bytes.Repeat([]byte(": keep-alive\n"), 1<<12),
		"invalid everywhere":  append(append([]byte("data: "), bytes.Repeat([]byte{0xff}, 1<<17)...), '\n', '\n'),
		"a long unknown line": append([]byte("unknown: "), bytes.Repeat([]byte("x"), 1<<18)...),
	} {
		for _, size := range []int{1, 512, 32 << 10, len(stream)} {
			stream := stream
			if size == 1 {
				stream = stream[:min(len(stream), 32<<10)]
			}
			d := feed(t, stream, size)
			require.LessOrEqual(t, d.work, limit*int64(len(stream)), "%s in pieces of %d", name, size)
		}
	}
}

func FuzzDecoder(f *testing.F) {
	vectors, err := fixtures.Vectors()
	require.NoError(f, err)
	for _, v := range vectors {
		if b := v.Bytes(); len(b) <= 4<<10 {
			f.Add(b, uint16(7))
		}
	}
	f.Fuzz(func(t *testing.T, stream []byte, size uint16) {
		whole, wholeFlushed, _ := decode(t, stream)
		got, flushed, d := decode(t, split(stream, int(size)+1)...)
		require.Equal(t, events(whole), events(got))
		require.Equal(t, wholeFlushed, flushed)
		require.LessOrEqual(t, len(flushed), 1)
		require.LessOrEqual(t, d.work, 6*int64(len(stream))+64)
		for _, e := range events(got) {
			require.NotEmpty(t, e.Name)
			require.Equal(t, string(e.Data), strings.ToValidUTF8(string(e.Data), "?"))
			require.NotContains(t, string(e.Data), "\r")
			require.NotContains(t, e.ID, "\x00")
		}
	})
}

func BenchmarkDecoder(b *testing.B) {
	small := bytes.Repeat([]byte("event: searching:start\ndata: {\"message\":\"Searching with 6 queries\",\"iteration\":1}\n\n"), 10_000)
	for name, stream := range map[string][]byte{"one-event-2MiB": one(2 << 20), "one-event-8MiB": one(8 << 20), "small-events": small} {
		for _, size := range []int{512, 32 << 10} {
			b.Run(fmt.Sprintf("%s/pieces-of-%d", name, size), func(b *testing.B) {
				b.SetBytes(int64(len(stream)))
				b.ReportAllocs()
				for b.Loop() {
					feed(b, stream, size)
				}
			})
		}
	}
}

// Four times the length may take about four times as long (the metric "ratio"); a decoder that rescans takes sixteen
// times. TestWorkIsLinear proves it without a clock.
func BenchmarkFourTimesTheLength(b *testing.B) {
	short, long := one(2<<20), one(8<<20)
	timed := func(stream []byte) time.Duration {
		start := time.Now()
		feed(b, stream, 512)
		return time.Since(start)
	}
	least := [2]time.Duration{time.Hour, time.Hour} // a busy machine only ever adds time
	for b.Loop() {
		least[0], least[1] = min(least[0], timed(short)), min(least[1], timed(long))
	}
	b.ReportMetric(float64(least[1])/float64(least[0]), "ratio")
}

func feed(t testing.TB, stream []byte, size int) *Decoder {
	d := new(Decoder)
	for len(stream) > 0 {
		n := min(size, len(stream))
		if _, err := d.Feed(stream[:n]); err != nil {
			t.Fatal(err)
		}
		stream = stream[n:]
	}
	return d
}

// one is a stream of one event with a single data line of n bytes.
func one(n int) []byte {
	return append(append([]byte("data: "), bytes.Repeat([]byte("x"), n)...), '\n', '\n')
}

func split(b []byte, size int) [][]byte {
	var out [][]byte
	for len(b) > 0 {
		n := min(size, len(b))
		out = append(out, b[:n])
		b = b[n:]
	}
	return out
}

// same compares without reflection: the cuts are many.
func same(a, b []Event) bool {
	return slices.EqualFunc(a, b, func(x, y Event) bool {
		return x.Name == y.Name && x.ID == y.ID && x.Unterminated == y.Unterminated && bytes.Equal(x.Data, y.Data)
	})
}

func events(all []seen) []Event {
	var out []Event
	for _, s := range all {
		out = append(out, s.Event)
	}
	return out
}
