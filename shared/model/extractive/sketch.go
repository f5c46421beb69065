package extractive

import "hash/maphash"

// sketch is a Bloom filter of what the words of a claim could be partners of, with one hash: it may have what it was not given, and never lacks
// what it was. It tells in a fraction of the time that align takes that most claims add something to one another.
type sketch [sketchWords]uint64

const sketchWords = 8 // for some 20 terms of a statement and 3 to 5 features of each, few bits are taken by two

var sketchSeed = maphash.MakeSeed()

// The kinds of features: words of two claims are partners in align only if they share one of these.
const (
	ofStem    = "s" // equal
	ofConcept = "c" // synonyms
	ofAxis    = "a" // of the same side of a pair of opposites, or of both
	ofStart   = "b" // derived forms have their first 5 bytes in common, by kin
	ofEnd     = "e" // and a word and its negation their last 3, by negates
)

// sketchOf gives the sketch of a claim as reported.
func sketchOf(c *claim) sketch {
	var s sketch
	for _, t := range c.terms {
		if t.kind == content {
			t.features(func(bit uint) bool {
				s[bit/64] |= 1 << (bit % 64)
				return true
			})
		}
	}
	return s
}

// adds reports whether a claim surely has a word of weight, and not only of its source, to which no word of the sketched one is a partner:
// then compare does not take it for a repetition. Both are as reported.
func (s *sketch) adds(newer *claim) bool {
	for _, t := range newer.terms {
		if !t.strong() || t.context || t.source && !t.name {
			continue
		}
		lacks := t.features(func(bit uint) bool { return s[bit/64]>>(bit%64)&1 == 0 })
		if lacks && !t.does() && !words().is("link", t.low, t.stem) { // which links pairs whatever the words are
			return true
		}
	}
	return false
}

// features calls fn for each feature of a term, as long as it says true, and reports whether it always did.
func (t term) features(fn func(bit uint) bool) bool {
	feature := func(kind, text string) bool {
		var h maphash.Hash
		h.SetSeed(sketchSeed)
		h.WriteString(kind)
		h.WriteString(text)
		return fn(uint(h.Sum64() % (sketchWords * 64)))
	}
	if !feature(ofStem, t.stem) {
		return false
	}
	for _, c := range t.concepts {
		if !feature(ofConcept, c) {
			return false
		}
	}
	for _, p := range t.poles {
		if !feature(ofAxis, p.axis) {
			return false
		}
	}
	if n := len(t.stem); n >= 5 && !feature(ofStart, t.stem[:5]) || n >= 3 && !feature(ofEnd, t.stem[n-3:]) {
		return false
	}
	return true
}
