package vector

import (
	"cmp"
	"fmt"
	"slices"
)

// Set is a collection of normalised vectors of one dimension, each under an id. The zero Set is empty and takes its
// dimension from the first vector added. It is not safe for concurrent use while it is changed; any number of readers
// may scan it at once.
type Set struct {
	dim  int
	ids  []string
	data []float32 // row i is data[i*dim:(i+1)*dim]: one block of memory, since a scan is bound by reading it
	rows map[string]int
}

// NewSet returns an empty set for vectors of dim components; 0 takes the dimension of the first vector added.
func NewSet(dim int) *Set {
	return &Set{dim: dim}
}

// Add puts a normalised copy of v under id, in place of the vector that was there. It returns ErrDimension if v does
// not have the set's dimension and ErrUnusable if it has no direction; the set is then unchanged.
func (s *Set) Add(id string, v []float32) error {
	if s.dim != 0 && len(v) != s.dim {
		return fmt.Errorf("adding %s: %w: %d components, the set has %d", id, ErrDimension, len(v), s.dim)
	}
	unit := Normalise(v)
	if !slices.ContainsFunc(unit, func(x float32) bool { return x != 0 }) {
		return fmt.Errorf("adding %s: %w", id, ErrUnusable)
	}
	if s.rows == nil {
		s.rows = map[string]int{}
	}
	s.dim = len(v)
	if row, known := s.rows[id]; known {
		copy(s.row(row), unit)
		return nil
	}
	s.rows[id] = len(s.ids)
	s.ids = append(s.ids, id)
	s.data = append(s.data, unit...)
	return nil
}

// Remove takes the vector of id out and reports whether there was one.
func (s *Set) Remove(id string) bool {
	row, known := s.rows[id]
	if !known {
		return false
	}
	last := len(s.ids) - 1
	copy(s.row(row), s.row(last))
	s.ids[row] = s.ids[last]
	s.rows[s.ids[row]] = row
	delete(s.rows, id)
	s.ids = s.ids[:last]
	s.data = s.data[:last*s.dim]
	return true
}

// Vector returns the normalised vector of id; it is shared with the set and must not be changed.
func (s *Set) Vector(id string) ([]float32, bool) {
	row, known := s.rows[id]
	if !known {
		return nil, false
	}
	return s.row(row), true
}

// Len returns how many vectors the set holds.
func (s *Set) Len() int { return len(s.ids) }

func (s *Set) row(i int) []float32 {
	return s.data[i*s.dim : (i+1)*s.dim : (i+1)*s.dim]
}

// Hit is one found vector.
type Hit struct {
	ID    string
	Score float32 // cosine similarity with the query, -1 to 1
}

// TopK returns the at most k vectors of the set whose cosine similarity with the query is at least floor, the most
// similar first, equals by id. It is exact: every vector is looked at. The query need not be normalised. It returns
// ErrDimension if the query does not have the set's dimension, and ErrUnusable if it has no direction; an empty set
// answers with nothing.
func TopK(query []float32, s *Set, k int, floor float32) ([]Hit, error) {
	return TopKWhere(query, s, k, floor, func(string) bool { return true })
}

// TopKWhere is TopK over the vectors whose id keep accepts.
func TopKWhere(query []float32, s *Set, k int, floor float32, keep func(id string) bool) ([]Hit, error) {
	if s.Len() == 0 || k <= 0 {
		return nil, nil
	}
	if len(query) != s.dim {
		return nil, fmt.Errorf("query: %w: %d components, the set has %d", ErrDimension, len(query), s.dim)
	}
	unit := Normalise(query)
	if !slices.ContainsFunc(unit, func(x float32) bool { return x != 0 }) {
		return nil, fmt.Errorf("query: %w", ErrUnusable)
	}
	b := best{k: k}
	for i, id := range s.ids {
		if score := Dot(unit, s.row(i)); score >= floor && b.wants(score) && keep(id) {
			b.add(Hit{ID: id, Score: score})
		}
	}
	return b.take(), nil
}

// best keeps the k best hits, and up to as many that are not sorted out yet: n hits cost n log k whatever their order.
type best struct {
	k    int
	hits []Hit
	full bool    // at least k were seen
	low  float32 // then: no hit below this can be among them
}

func (b *best) wants(score float32) bool { return !b.full || score >= b.low }

func (b *best) add(h Hit) {
	b.hits = append(b.hits, h)
	if len(b.hits) >= 2*b.k {
		b.take()
	}
}

// take returns the at most k best, in order.
func (b *best) take() []Hit {
	slices.SortFunc(b.hits, byRank)
	if len(b.hits) >= b.k {
		b.hits = b.hits[:b.k]
		b.full, b.low = true, b.hits[b.k-1].Score
	}
	return b.hits
}

// byRank orders hits by falling score, then by id.
func byRank(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
}
