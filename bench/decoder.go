package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"syscall"
	"time"

	gosse "github.com/tmaxmax/go-sse"

	"github.com/factstream/factstream/fixtures"
	"github.com/factstream/factstream/shared/sse"
)

const (
	// decoderLong ends the sampling of what takes this long for one pass (a decoder that searches its buffer again with every piece), after
	// longSamples.
	decoderLong = 400 * time.Millisecond
	longSamples = 2

	decoderRatio = 1.5

	unitCPU = "cpu-ns/op"

	smallStream  = 1 << 20
	mediumStream = 2 << 20
	pieceSize    = 512
)

// tape is a stream that every decoder gets.
type tape struct {
	size   string // small, medium or large events: in the names of the samples
	about  string // for people
	stream []byte
	holds  found
}

// decoder is one way of reading a stream. It returns what it found: events, and the bytes of their data.
type decoder struct {
	name   string
	exact  bool // it finds events, and must find all
	decode func(stream []byte, piece int) (found, error)
}

type found struct{ events, data int }

func decoders() []decoder {
	return []decoder{{"factstream", true, byOurs}, {"go-sse", true, byGoSSE}, {"indexbyte", false, byIndexByte}}
}

// measureDecoders gives each decoder the same streams, in turns. The floor is looking at every byte once for the ends of lines.
func measureDecoders(ctx context.Context, r *run) ([]Row, error) {
	tapes, err := tapes(r.largeEvent)
	if err != nil {
		return nil, err
	}
	long := map[string]int{}
	for range r.decoderRounds {
		for _, t := range tapes {
			for _, piece := range []int{len(t.stream), pieceSize} {
				for _, d := range decoders() {
					if err := ctx.Err(); err != nil {
						return nil, err
					}
					name := decoderSampleName(t, piece, d.name)
					if long[name] == longSamples {
						continue
					}
					ops, took, cpu, err := timeDecoder(d, t, piece, r.decoderSample)
					if err != nil {
						return nil, fmt.Errorf("%s: %w", name, err)
					}
					if took/time.Duration(ops) > decoderLong {
						long[name]++
					}
					r.samples.took(name, ops, took, Value{float64(cpu.Nanoseconds()) / float64(ops), unitCPU}, Value{float64(len(t.stream)) * float64(ops) / cpu.Seconds() / 1e6, "MB/s"})
				}
			}
		}
	}
	section := "decoder: time of go-sse / ours (processor time, p50)"
	var rows []Row
	for _, t := range tapes {
		for _, piece := range []int{len(t.stream), pieceSize} {
			ours := decoderSampleName(t, piece, "factstream")
			speed := r.samples.ratio(decoderSampleName(t, piece, "go-sse"), ours, unitCPU)
			floor := r.samples.ratio(ours, decoderSampleName(t, piece, "indexbyte"), unitCPU)
			what := fmt.Sprintf("%s, %s", t.about, inPieces(t, piece))
			row := Row{Section: section, What: what, Figure: times(speed)}
			if t.size == "small" {
				row = atLeast(section, row.What, speed, decoderRatio)
			}
			rows = append(rows, row, Row{Section: section, What: "  ours / bytes.IndexByte", Figure: times(floor)})
		}
	}
	return rows, nil
}

func inPieces(t tape, piece int) string {
	if piece == len(t.stream) {
		return "whole"
	}
	return fmt.Sprintf("by %d bytes", piece)
}

func decoderSampleName(t tape, piece int, by string) string {
	pieces := fmt.Sprint(piece)
	if piece == len(t.stream) {
		pieces = "whole"
	}
	return fmt.Sprintf("Decoder/events=%s/pieces=%s/by=%s", t.size, pieces, by)
}

// timeDecoder takes one sample: passes, their time, and the time of the processor for them, with that of collecting what they leave behind. Memory that the one before has left behind is collected first, so that no one pays for another.
func timeDecoder(d decoder, t tape, piece int, sample time.Duration) (ops int, took, cpu time.Duration, err error) {
	runtime.GC()
	before := processorTime()
	for began := time.Now(); took < sample; took = time.Since(began) {
		got, err := d.decode(t.stream, piece)
		if err != nil {
			return 0, 0, 0, err
		}
		if d.exact && got != t.holds {
			return 0, 0, 0, fmt.Errorf("%w: %d events with %d bytes, not %d with %d", errUnfit, got.events, got.data, t.holds.events, t.holds.data)
		}
		ops++
	}
	return ops, took, max(processorTime()-before, time.Nanosecond), nil
}

// processorTime is what this process has used so far. What others do on the machine does not count in it, so that a ratio holds there too.
func processorTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err) // the arguments are right
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func byOurs(stream []byte, piece int) (f found, err error) {
	var d sse.Decoder
	for len(stream) > 0 {
		n := min(piece, len(stream))
		events, err := d.Feed(stream[:n])
		if err != nil {
			return found{}, err
		}
		for i := range events {
			f.events++
			f.data += len(events[i].Data)
		}
		stream = stream[n:]
	}
	return f, nil
}

func byGoSSE(stream []byte, piece int) (f found, err error) {
	for e, err := range gosse.Read(&pieces{stream, piece}, &gosse.ReadConfig{MaxEventSize: sse.MaxEvent}) {
		if err != nil {
			return found{}, err
		}
		f.events++
		f.data += len(e.Data)
	}
	return f, nil
}

// pieces is a reader that gives no more than a piece at once, as a connection does.
type pieces struct {
	rest []byte
	most int
}

func (p *pieces) Read(into []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(into[:min(len(into), p.most)], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// byIndexByte finds the ends of lines and nothing else; it counts them in place of data.
func byIndexByte(stream []byte, piece int) (f found, err error) {
	for len(stream) > 0 {
		part := stream[:min(piece, len(stream))]
		stream = stream[len(part):]
		for len(part) > 0 {
			i := bytes.IndexByte(part, '\n')
			if i < 0 {
				break
			}
			f.data++
			part = part[i+1:]
		}
	}
	return f, nil
}

// tapes are made of the recorded streams: their smaller events alone, the streams as they are, and one large event.
func tapes(largeEvent int) ([]tape, error) {
	var recorded []byte
	for _, mode := range []string{"fast", "balanced"} {
		stream, err := fixtures.Stream("tabstack", mode)
		if err != nil {
			return nil, err
		}
		recorded = append(recorded, stream...)
	}
	var small []byte
	for block := range bytes.SplitAfterSeq(recorded, []byte("\n\n")) {
		if len(block) <= 1<<10 {
			small = append(small, block...)
		}
	}
	large := append(append([]byte("event: complete\ndata: "), bytes.Repeat([]byte("x"), largeEvent)...), "\n\n"...)
	var out []tape
	for _, t := range []tape{{size: "small", about: "small events", stream: repeated(small, smallStream)}, {size: "medium", about: "recorded streams", stream: repeated(recorded, mediumStream)}, {size: "large", about: fmt.Sprintf("one event of %d KiB", largeEvent>>10), stream: large}} {
		var err error
		if t.holds, err = byOurs(t.stream, math.MaxInt); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// repeated is a part again and again until there is at least so much of it.
func repeated(part []byte, atLeast int) []byte { return bytes.Repeat(part, 1+atLeast/len(part)) }
