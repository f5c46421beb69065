package tiny

import (
	"bytes"
	"encoding/binary"
	"math"
)

// The format GGUF, version 3: a header, key-value pairs, a table of tensors, and the tensors' values from the next multiple of
// alignment on, each at a multiple of it. All numbers are little-endian.
const (
	ggufMagic   = "GGUF"
	ggufVersion = 3
	alignment   = 32
)

// Types of values.
const (
	typeUint32  = 4
	typeInt32   = 5
	typeFloat32 = 6
	typeBool    = 7
	typeString  = 8
	typeArray   = 9
)

const tensorFloat32 = 0

// pair is one entry of the metadata. The value's type is one of uint32, float32, bool, string, []string, []int32, []float32.
type pair struct {
	key   string
	value any
}

// tensor holds float32 values; the first dimension is the one that varies fastest.
type tensor struct {
	name       string
	dimensions []int
	values     []float32
}

// encode gives a whole file.
func encode(pairs []pair, tensors []tensor) []byte {
	var w writer
	w.buf.WriteString(ggufMagic)
	w.put(uint32(ggufVersion))
	w.put(uint64(len(tensors)))
	w.put(uint64(len(pairs)))
	for _, p := range pairs {
		w.text(p.key)
		w.value(p.value)
	}
	offset := 0
	for _, t := range tensors {
		w.text(t.name)
		w.put(uint32(len(t.dimensions)))
		for _, d := range t.dimensions {
			w.put(uint64(d))
		}
		w.put(uint32(tensorFloat32))
		w.put(uint64(offset))
		offset = aligned(offset + 4*len(t.values))
	}
	for _, t := range tensors {
		w.pad()
		for _, v := range t.values {
			w.put(math.Float32bits(v))
		}
	}
	w.pad()
	return w.buf.Bytes()
}

func aligned(n int) int { return (n + alignment - 1) / alignment * alignment }

type writer struct{ buf bytes.Buffer }

// put writes a number or a bool. A buffer takes everything, so there is no error to return.
func (w *writer) put(v any) {
	if err := binary.Write(&w.buf, binary.LittleEndian, v); err != nil {
		panic(err) // a type without a fixed size: a fault of this package
	}
}

func (w *writer) text(s string) {
	w.put(uint64(len(s)))
	w.buf.WriteString(s)
}

func (w *writer) pad() {
	w.buf.Write(make([]byte, aligned(w.buf.Len())-w.buf.Len()))
}

func (w *writer) value(v any) {
	switch v := v.(type) {
	case uint32:
		w.put(uint32(typeUint32))
		w.put(v)
	case float32:
		w.put(uint32(typeFloat32))
		w.put(v)
	case bool:
		w.put(uint32(typeBool))
		w.put(v)
	case string:
		w.put(uint32(typeString))
		w.text(v)
	case []string:
		w.array(typeString, len(v))
		for _, s := range v {
			w.text(s)
		}
	case []int32:
		w.array(typeInt32, len(v))
		w.put(v)
	case []float32:
		w.array(typeFloat32, len(v))
		w.put(v)
	default:
		panic("tiny: a value of a type that is not written")
	}
}

func (w *writer) array(of uint32, length int) {
	w.put(uint32(typeArray))
	w.put(of)
	w.put(uint64(length))
}
