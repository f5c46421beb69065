package extractive

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/measure"
)

// Dimension is the number of values of a vector.
const Dimension = 512

// Embed hashes the words, word pairs and letters of each text into a vector of length 1. Synonyms and opposites share their place, so
// that claims of one thing are near each other whether they agree or not: judging is not its work. Both kinds of text are treated
// alike. The only error is the cause of ctx.
func (Engine) Embed(ctx context.Context, texts []string, _ model.EmbedKind) ([][]float32, error) {
	out := make([][]float32, 0, len(texts))
	for _, t := range texts {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		out = append(out, slices.Clone(vectorOf(t)))
	}
	return out, nil
}

// Floor is the cosine from which two facts are put before the judge. It was set by the labelled pairs of testdata, as floorReason says;
// TestFloorNominates repeats the measurement.
const Floor = 0.30

const floorReason = "all 369 of the labelled pairs that contradict or repeat each other reach 0.30 (the lowest 0.42), and so do all pairs that the recorded reports name (the lowest 0.38), but 0.6 percent of 348,452 pairs crossed from them"

// The weights of the kinds of features, after their counts were damped. Names and units say most of what a claim is about; who says it,
// how it was found, and verbs of having and doing say little; the figures themselves must not hold apart what they contradict.
const (
	wordWeight   = 1.0
	nameWeight   = 1.4
	lightWeight  = 0.35
	sourceWeight = 0.35
	weakWeight   = 0.2
	pairWeight   = 0.25
	letterWeight = 0.2
	stemWeight   = 0.4  // the first letters of a long word: "punctual", "punctuality"
	unitWeight   = 0.8  // of a quantity with a unit of its own
	commonWeight = 0.45 // of a share, a duration, an amount of money
	countWeight  = 0.15 // of a bare number
	figureWeight = 1.2  // the same figure of the same unit
	dateWeight   = 0.2
)

// prefix is how many letters of a word stand for it in another form.
const prefix = 5

// vectorOf is the embedding of a text, remembered for a while. Others have the same one: it must not be changed.
func vectorOf(text string) []float32 {
	v, ok := latelyEmbedded.find(text)
	if !ok {
		v = embedding(text)
		latelyEmbedded.keep(text, v)
	}
	return v
}

func embedding(text string) []float32 {
	c := read(text)
	var features features
	last := ""
	for _, t := range c.terms {
		if t.kind != content {
			continue
		}
		key := t.key()
		switch {
		case t.weak:
			features.add(weakWeight, "w ", key)
			continue
		case t.light || t.says || t.method:
			features.add(lightWeight, "w ", key)
			continue
		case t.source && !t.name:
			features.add(sourceWeight, "w ", key)
			continue
		case t.name:
			features.add(nameWeight, "w ", key)
		default:
			features.add(wordWeight, "w ", key)
		}
		if last != "" {
			features.add(pairWeight, "p ", last, " ", key)
		}
		last = key
		if opening := t.opening(); opening != "" {
			features.add(stemWeight, "s ", opening)
		}
		features.addLetters(t.stem)
	}
	for _, quantities := range [][]measure.Quantity{c.quantities, c.asideQuantities} {
		for _, q := range quantities {
			features.add(familyWeight(q.Family), "q ", q.Family)
			if q.Family != measure.Count {
				features.add(figureWeight, fmt.Sprintf("v %s %.4g %.4g", q.Family, q.Lo, q.Hi))
			}
		}
	}
	for range c.dates {
		features.add(dateWeight, "d")
	}
	return unit(features.sum())
}

// opening are the first letters of a word that is longer, "" for any other.
func (t term) opening() string {
	if t.glyph || len(t.stem) <= prefix {
		return ""
	}
	n := 0
	for i := range t.stem {
		if n == prefix {
			return t.stem[:i]
		}
		n++
	}
	return ""
}

// features are the names of all features of a text, one behind the other, and where each of them stands.
type features struct {
	names []byte
	all   []feature
}

type feature struct {
	start, end int
	weight     float64
}

func (f *features) add(weight float64, parts ...string) {
	start := len(f.names)
	for _, p := range parts {
		f.names = append(f.names, p...)
	}
	f.all = append(f.all, feature{start, len(f.names), weight})
}

// addLetters adds each three letters that follow one another in a word of more than three, its ends included.
func (f *features) addLetters(stem string) {
	if utf8.RuneCountInString(stem) <= 3 {
		return
	}
	padded := " " + stem + " "
	for i := range padded {
		end := i
		for n := 0; n < 3 && end < len(padded); n++ {
			_, size := utf8.DecodeRuneInString(padded[end:])
			end += size
			if n == 2 {
				f.add(letterWeight, "l ", padded[i:end])
			}
		}
	}
}

func (f *features) name(x feature) []byte { return f.names[x.start:x.end] }

// sum adds up the features, each with the most that it weighs, its repetitions damped.
func (f *features) sum() []float64 {
	slices.SortFunc(f.all, func(a, b feature) int { return bytes.Compare(f.name(a), f.name(b)) }) // in one order: sums of floats depend on it
	sum := make([]float64, Dimension)
	for i := 0; i < len(f.all); {
		name, weight, n := f.name(f.all[i]), 0.0, 0
		for ; i < len(f.all) && bytes.Equal(f.name(f.all[i]), name); i++ {
			weight, n = max(weight, f.all[i].weight), n+1
		}
		damped := 1.0
		if n > 1 {
			damped += math.Log(float64(n))
		}
		slot, sign := hashed(name)
		sum[slot] += sign * weight * damped
	}
	return sum
}

func familyWeight(family string) float64 {
	switch {
	case family == measure.Count:
		return countWeight
	case family == "ratio", family == "times", family == "time", strings.HasPrefix(family, "money"):
		return commonWeight
	}
	return unitWeight
}

// key is the place that a term shares with its synonyms and opposites.
func (t term) key() string {
	switch {
	case len(t.poles) > 0:
		return t.poles[0].axis
	case len(t.concepts) > 0:
		return t.concepts[0]
	}
	return t.stem
}

func hashed(feature []byte) (slot int, sign float64) {
	h := fnv.New64a()
	h.Write(feature)
	v := h.Sum64()
	if v>>63 == 1 {
		return int(v % Dimension), -1
	}
	return int(v % Dimension), 1
}

// unit scales v to length 1. A text without features gets the first axis, since every vector has length 1.
func unit(v []float64) []float32 {
	sum := 0.
	for _, x := range v {
		sum += x * x
	}
	out := make([]float32, len(v))
	if sum < 1e-18 {
		out[0] = 1
		return out
	}
	norm := math.Sqrt(sum)
	for i, x := range v {
		out[i] = float32(x / norm)
	}
	return out
}

func cosine(a, b []float32) float64 {
	sum := 0.
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// sameKeys counts the distinct words of weight that two claims share, synonyms counted as equal.
func sameKeys(a, b map[string]bool) int {
	n := 0
	for k := range a {
		if b[k] {
			n++
		}
	}
	return n
}

// keys are the places of a claim's words of weight.
func (c *claim) keys() map[string]bool {
	out := map[string]bool{}
	for _, t := range c.terms {
		if t.strong() {
			out[strings.ToLower(t.key())] = true
		}
	}
	return out
}
