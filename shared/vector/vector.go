// Package vector holds embeddings and finds the nearest by an exact scan. Vectors are float32; similarity is the
// cosine, taken as the dot product of vectors of length 1.
package vector

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Errors of this package.
var (
	// ErrDimension: a vector has another number of components than the set it is put in or asked of.
	ErrDimension = errors.New("vector has the wrong dimension")
	// ErrUnusable: a vector has no direction: no components, all zero, or one that is NaN or infinite.
	ErrUnusable = errors.New("vector has no direction")
	// ErrEncoding: bytes that are not an encoded vector.
	ErrEncoding = errors.New("bytes are not an encoded vector")
)

// Normalise returns a copy of v scaled to length 1. What has no direction (no components, all zero, NaN or infinite)
// comes back as zeros, whose similarity with everything is 0. v is not changed.
func Normalise(v []float32) []float32 {
	out := make([]float32, len(v))
	// In float64: the square of a large float32 overflows float32.
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	if sum == 0 || math.IsInf(sum, 0) || math.IsNaN(sum) {
		return out
	}
	scale := 1 / math.Sqrt(sum)
	for i, x := range v {
		out[i] = float32(float64(x) * scale)
	}
	return out
}

// Dot returns the dot product of a and b, which is the cosine similarity (-1 to 1) of normalised vectors. It panics if
// their lengths differ.
func Dot(a, b []float32) float32 {
	if len(a) != len(b) {
		panic(fmt.Sprintf("vector: dot of %d and %d components", len(a), len(b)))
	}
	// Four independent sums: one would make every addition wait for the one before.
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}

// Encode returns v as 4 bytes a component, IEEE 754, little endian.
func Encode(v []float32) []byte {
	out := make([]byte, 0, 4*len(v))
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

// Decode is the inverse of Encode. Bytes whose number is not a multiple of 4 are ErrEncoding.
func Decode(b []byte) ([]float32, error) {
	if len(b)%4 != 0 {
		return nil, fmt.Errorf("%w: %d bytes", ErrEncoding, len(b))
	}
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out, nil
}
