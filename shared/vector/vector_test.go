package vector

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func random(r *rand.Rand, dim int) []float32 {
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func TestNormaliseGivesLengthOne(t *testing.T) {
	t.Parallel()
	v := []float32{3, 0, 4}
	assert.Equal(t, []float32{0.6, 0, 0.8}, Normalise(v))
	assert.Equal(t, []float32{3, 0, 4}, v, "the argument stays")
	assert.InDelta(t, 1, Dot(Normalise([]float32{1e30, 1e30}), Normalise([]float32{1e30, 1e30})), 1e-6)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, useless := range [][]float32{{}, {0, 0}, {inf, 1}, {nan, 1}} {
		assert.Equal(t, make([]float32, len(useless)), Normalise(useless))
	}
}

func TestDotOfEveryLength(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for dim := range 20 {
		a, b := random(r, dim), random(r, dim)
		var want float64
		for i := range a {
			want += float64(a[i]) * float64(b[i])
		}
		assert.InDelta(t, want, Dot(a, b), 1e-4)
	}
	assert.Panics(t, func() { Dot([]float32{1}, []float32{1, 2}) })
}

func TestTopKIsExactAndOrdered(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		// Few directions, so that equal scores are common.
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		n, k := rapid.IntRange(0, 60).Draw(t, "n"), rapid.IntRange(0, 12).Draw(t, "k")
		floor := float32(rapid.Float64Range(-1, 1).Draw(t, "floor"))
		s := NewSet(2)
		query := []float32{1, 0.5}
		var want []Hit
		for _, i := range r.Perm(n) {
			v := []float32{float32(r.IntN(3) - 1), 1}
			id := fmt.Sprintf("f%02d", i)
			require.NoError(t, s.Add(id, v))
			if score := Dot(Normalise(query), Normalise(v)); score >= floor && i%5 != 0 {
				want = append(want, Hit{id, score})
			}
		}
		slices.SortFunc(want, byRank)
		want = want[:min(k, len(want))]
		got, err := TopKWhere(query, s, k, floor, func(id string) bool { return (id[2]-'0')%5 != 0 })
		require.NoError(t, err)
		require.Equal(t, append([]Hit{}, want...), append([]Hit{}, got...))
	})
}

func TestSetKeepsOneVectorPerID(t *testing.T) {
	t.Parallel()
	var s Set
	hits, err := TopK([]float32{1}, &s, 3, 0)
	assert.NoError(t, err)
	assert.Empty(t, hits)

	require.NoError(t, s.Add("a", []float32{1, 0}))
	require.NoError(t, s.Add("b", []float32{0, 2}))
	require.NoError(t, s.Add("c", []float32{1, 1}))
	require.NoError(t, s.Add("a", []float32{0, -1}), "replaced")
	assert.Equal(t, 3, s.Len())
	hits, err = TopK([]float32{0, 5}, &s, 10, -1)
	require.NoError(t, err)
	assert.Equal(t, []string{"b", "c", "a"}, []string{hits[0].ID, hits[1].ID, hits[2].ID})
	assert.Equal(t, float32(-1), hits[2].Score)

	assert.True(t, s.Remove("a"))
	assert.False(t, s.Remove("a"))
	v, ok := s.Vector("c")
	assert.True(t, ok)
	assert.InDelta(t, math.Sqrt2/2, v[0], 1e-6)
	_, ok = s.Vector("a")
	assert.False(t, ok)
	require.NoError(t, s.Add("d", []float32{-1, 0}))
	hits, err = TopK([]float32{-1, 0}, &s, 1, 0.9)
	require.NoError(t, err)
	assert.Equal(t, []Hit{{"d", 1}}, hits)
}

func TestSetRefusesVectorsItCannotCompare(t *testing.T) {
	t.Parallel()
	s := NewSet(2)
	assert.ErrorIs(t, s.Add("a", []float32{1}), ErrDimension)
	assert.ErrorIs(t, s.Add("a", []float32{0, 0}), ErrUnusable)
	assert.ErrorIs(t, s.Add("a", []float32{float32(math.NaN()), 1}), ErrUnusable)
	assert.Zero(t, s.Len())
	require.NoError(t, s.Add("a", []float32{1, 1}))
	_, err := TopK([]float32{1, 2, 3}, s, 1, 0)
	assert.ErrorIs(t, err, ErrDimension)
	_, err = TopK([]float32{0, 0}, s, 1, 0)
	assert.ErrorIs(t, err, ErrUnusable)
	var open Set
	assert.ErrorIs(t, open.Add("a", nil), ErrUnusable)
}

func FuzzDecode(f *testing.F) {
	f.Add(Encode([]float32{1, -0.5, float32(math.NaN())}))
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := Decode(b)
		if len(b)%4 != 0 {
			require.ErrorIs(t, err, ErrEncoding)
			return
		}
		require.NoError(t, err)
		require.Equal(t, append([]byte{}, b...), Encode(v))
	})
}

func BenchmarkTopK(b *testing.B) {
	const n, dim = 10_000, 768
	r := rand.New(rand.NewPCG(3, 4))
	s := NewSet(dim)
	for i := range n {
		if err := s.Add(fmt.Sprint(i), random(r, dim)); err != nil {
			b.Fatal(err)
		}
	}
	query := random(r, dim)
	b.SetBytes(4 * n * dim)
	for b.Loop() {
		if _, err := TopK(query, s, 24, -1); err != nil {
			b.Fatal(err)
		}
	}
}
