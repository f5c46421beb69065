package extractive

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/extractive/measure"
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
	counts, weights := map[string]float64{}, map[string]float64{}
	add := func(feature string, weight float64) {
		counts[feature]++
		weights[feature] = max(weights[feature], weight)
	}
	c := read(text)
	last := ""
	for _, t := range c.terms {
		if t.kind != content {
			continue
		}
		key := t.key()
		switch {
		case t.weak:
			add("w "+key, weakWeight)
			continue
		case t.light || t.says || t.method:
			add("w "+key, lightWeight)
			continue
		case t.source && !t.name:
			add("w "+key, sourceWeight)
			continue
		case t.name:
			add("w "+key, nameWeight)
		default:
			add("w "+key, wordWeight)
		}
		if last != "" {
			add("p "+last+" "+key, pairWeight)
		}
		last = key
		letters := []rune(t.stem)
		if !t.glyph && len(letters) > prefix {
			add("s "+string(letters[:prefix]), stemWeight)
		}
		padded := []rune(" " + t.stem + " ")
		for i := 0; i+3 <= len(padded) && len(padded) > 5; i++ {
			add("l "+string(padded[i:i+3]), letterWeight)
		}
	}
	for _, q := range slices.Concat(c.quantities, c.asideQuantities) {
		add("q "+q.Family, familyWeight(q.Family))
		if q.Family != measure.Count {
			add(fmt.Sprintf("v %s %.4g %.4g", q.Family, q.Lo, q.Hi), figureWeight)
		}
	}
	for range c.dates {
		add("d", dateWeight)
	}
	sum := make([]float64, Dimension)
	for _, feature := range slices.Sorted(maps.Keys(counts)) { // in one order: sums of floats depend on it
		slot, sign := hashed(feature)
		sum[slot] += sign * weights[feature] * (1 + math.Log(counts[feature]))
	}
	return unit(sum)
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

func hashed(feature string) (slot int, sign float64) {
	h := fnv.New64a()
	h.Write([]byte(feature))
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
