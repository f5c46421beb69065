package extractive

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// phrase is words of a text in order, for finding subject and verb. (A claim's terms leave out figures and dates, beside which a verb
// is known best.)
type phrase []word

type word struct {
	raw, low string // without punctuation
	number   bool   // begins with a digit or a sign of money
	ends     bool   // punctuation stands after it
}

func wordsOf(s string) phrase {
	var out phrase
	for _, field := range strings.Fields(s) {
		raw := strings.TrimLeft(field, "(\"“„«'‘")
		bare := strings.TrimRight(raw, ".,;:!?)\"”“»'’")
		if bare == "" {
			if len(out) > 0 {
				out[len(out)-1].ends = true
			}
			continue
		}
		first, _ := utf8.DecodeRuneInString(bare)
		w := word{raw: bare, low: strings.ReplaceAll(strings.ToLower(bare), "’", "'"), ends: bare != raw}
		w.number = unicode.IsDigit(first) || unicode.Is(unicode.Sc, first) || strings.ContainsRune("+-−~≈<>", first)
		out = append(out, w)
	}
	return out
}

// Small words by what they do.
var (
	determiners  = wordSet("a an the this that these those its their his her our your each every no some any all both another")
	possessives  = wordSet("its their")
	prepositions = wordSet(`of in on at to for from by with without into onto over across through as under between among amid within during until till upon per via than about near after before since
		against despite besides beyond behind below above around along toward towards like unlike according outside inside throughout`)
	conjunctions   = wordSet("and or nor but yet")
	subordinate    = wordSet("if unless when whenever because since although though while whereas as once until before after where wherever so whether provided given")
	conceding      = wordSet("while whereas although though")
	relatives      = wordSet("that which who whom whose where when why how what while whereas if because since although though unless until but so than whether")
	pronouns       = wordSet("it they them he she him this these those such same latter former another other others there here so too ones itself themselves respectively")
	comparatives   = wordSet("more less fewer higher lower larger smaller bigger greater longer shorter better worse faster slower cheaper dearer later earlier nearer farther further stronger weaker older younger newer deeper warmer colder heavier lighter")
	numerals       = wordSet("one two three four five six seven eight nine ten eleven twelve twenty thirty forty fifty hundred thousand")
	ordinals       = wordSet("first second third fourth fifth next previous following remaining rest")
	abstract       = wordSet("figure figures number numbers total share price prices cost costs average rate value trend increase decrease rise fall gap difference result results effect change amount sum ratio reason")
	quantifying    = wordSet("about around nearly almost roughly approximately only just up more less at over under between half double twice several many few most")
	openingAdverbs = wordSet("also then only even still not therefore thus hence instead however perhaps nor yet moreover furthermore meanwhile similarly likewise again i.e e.g ie eg namely specifically including especially")
)

// Verbs by their form. The lexicon has which words are verbs.
var (
	beVerbs     = wordSet("is are was were isn't aren't wasn't weren't")
	auxiliaries = wordSet(`is are was were has have had does do did will would can could may might must shall should cannot
		isn't aren't wasn't weren't hasn't haven't hadn't doesn't don't didn't won't wouldn't can't couldn't mustn't shouldn't`)
	strongPast = wordSet(`rose fell grew began became took gave went came knew ran wrote spoke broke chose drove flew froze sank shrank drew ate drank saw swam sang threw wore rode bore hid stole withdrew
		overtook underwent arose tore shook woke forbade forgot blew swore`)
	weakPast = wordSet(`built made found lost won led held bought sold spent paid said kept left met stood brought caught taught thought shut sent felt dealt told got sat slept shot fought sought struck bent
		lent dug hung spun swept fed fled bred meant heard`)
	unchanging = wordSet("cost put cut set hit let bid split spread") // past and present alike
	// foreignVerbs are verbs of other languages that most reports have. They are not looked for in English, where some are other words.
	foreignVerbs = wordSet(`ist sind war waren hat haben hatte hatten wird werden wurde wurden kann können soll sollen muss müssen liegt lag beträgt betrug kostet kostete erreicht erreichte plant beschäftigt
		beschäftigte produziert produzierte bleibt blieb est sont était étaient ont avait avaient sera seront peut peuvent doit doivent coûte coûtent atteint prévoit emploie produit produisent reste restent
		es son era eran fue fueron ha han será serán tiene tienen tenía está están puede pueden debe cuesta cuestan alcanza alcanzó emplea produce producen`)
)

// verb returns the index of the verb of a whole clause, -1 if the phrase is none as far as can be told: a subject must stand before it
// and something after it, and no word between that would make it the verb of a clause within.
func (p phrase) verb(language string) int {
	if len(p) < 3 || openingAdverbs[p[0].low] || conjunctions[p[0].low] || relatives[p[0].low] || p[0].inflected() {
		return -1
	}
	start := 0
	if prepositions[p[0].low] { // "in Japan, a consortium"
		comma := slices.IndexFunc(p, func(w word) bool { return w.ends })
		if comma < 0 || comma > 5 {
			return -1
		}
		start = comma + 1
	}
	for k := start + 1; k < len(p); k++ {
		if p.finite(k, language) {
			last := k+1 == len(p)
			if conjunctions[p[k-1].low] || last && auxiliaries[p[k].low] || !last && p[k].ends {
				return -1
			}
			return k
		}
		if relatives[p[k].low] {
			after := -1
			if p[k-1].ends {
				after = slices.IndexFunc(p[k:], func(w word) bool { return w.ends })
			}
			if after < 0 {
				return -1
			}
			k += after // a remark between commas
		}
	}
	return -1
}

// subjectOf returns the subject of the clause p, whose verb is at k, with a space after it, for a predicate that goes on without one: "[The
// bridge] was built in 1931 and [was closed in 2019]". It is "" if the next words are no such predicate, or if there is another verb
// in the clause that they could go on from. The text is that of p.
func (p phrase) subjectOf(k int, next phrase, text string) string {
	start := 0
	if p[0].low == "in" && p[1].ends {
		start = 2 // "In 2024, the bridge"
	}
	fields, first := strings.Fields(text), p[start]
	goesOn := len(next) > 1 && (auxiliaries[next[0].low] || strongPast[next[0].low] || next[0].inflected() && (strings.HasSuffix(next[0].low, "s") || !auxiliaries[p[k].low]))
	if !goesOn || len(fields) != len(p) || k > start+6 || pronouns[first.low] || possessives[first.low] || prepositions[first.low] || denying[first.low] || words().is("attribution", p[k].low, stem(p[k].low)) {
		return ""
	}
	for i, w := range p[start:] {
		if i += start; relatives[w.low] || i < k && w.ends || i > k+1 && p.finite(i, "en") {
			return ""
		}
	}
	subject := strings.Join(fields[start:k], " ") + " "
	if determiners[first.low] {
		subject = strings.ToLower(subject[:1]) + subject[1:]
	}
	return subject
}

// denying begin subjects of which a second verb may not be meant.
var denying = wordSet("no none nobody nothing neither few hardly")

// inflected reports whether a word can hardly be anything but a verb with its ending: a clause that begins with it has no subject.
func (w word) inflected() bool {
	return strongPast[w.low] || auxiliaries[w.low] || (strings.HasSuffix(w.low, "s") || strings.HasSuffix(w.low, "ed") || weakPast[w.low]) && words().is("verb", w.low, stem(w.low))
}

// finite reports whether the word at k is a verb that a subject before it governs.
func (p phrase) finite(k int, language string) bool {
	w, prev := p[k], p[k-1]
	first, _ := utf8.DecodeRuneInString(w.raw)
	if unicode.IsUpper(first) || w.number || determiners[prev.low] || strings.HasSuffix(prev.low, "'s") {
		return false
	}
	if language != "en" && foreignVerbs[w.low] {
		return true
	}
	switch {
	case prepositions[prev.low]:
		return false
	case auxiliaries[w.low], strongPast[w.low]:
		return true
	case strings.HasSuffix(w.low, "ing"):
		return false
	}
	lex, base := words(), stem(w.low)
	verb, both := lex.is("verb", w.low, base), lex.is("verb_noun", w.low, base)
	if !verb && !both {
		return false
	}
	if prev.number && !prev.ends && both {
		return false // "2.8 times the price"
	}
	plural := strings.HasSuffix(prev.low, "s") && !strings.HasSuffix(prev.low, "ss") || people[prev.low] || slices.ContainsFunc(p[:k], func(w word) bool { return w.low == "and" })
	prevFirst, _ := utf8.DecodeRuneInString(prev.raw)
	object := p.objectAfter(k)
	switch {
	case unchanging[w.low]:
		return object
	case strings.HasSuffix(w.low, "ed") && w.low != base || weakPast[w.low]:
		return !prev.ends && (lex.is("happening", w.low, base) || object || p.nounAfter(k))
	case strings.HasSuffix(w.low, "s") && base != w.low:
		name := unicode.IsUpper(prevFirst)
		return (!plural || name) && (object || verb || name && p.nounAfter(k))
	}
	return plural && (object || verb && p.nounAfter(k))
}

var people = wordSet("they we people men women children police staff")

// objectAfter reports whether an object plainly begins after the verb at k: a figure, an article, a name, "that", "to".
func (p phrase) objectAfter(k int) bool {
	if p[k].ends || k+1 == len(p) {
		return false
	}
	next := p[k+1]
	first, _ := utf8.DecodeRuneInString(next.raw)
	return next.number || unicode.IsUpper(first) || determiners[next.low] || quantifying[next.low] || numerals[next.low] || next.low == "to"
}

// nounAfter reports whether the word after the verb at k may be a noun or an adjective: "cells made in" has none, "makers made cells" has.
func (p phrase) nounAfter(k int) bool {
	if p[k].ends || k+1 == len(p) {
		return false
	}
	next := p[k+1].low
	return !prepositions[next] && !conjunctions[next] && !relatives[next] && !strings.HasSuffix(next, "ly") && !auxiliaries[next]
}

// goesOn reports whether the verb at k is of something in progress ("is running"): "while" before it is a time, no contrast.
func (p phrase) goesOn(k int) bool {
	return beVerbs[p[k].low] && k+1 < len(p) && strings.HasSuffix(p[k+1].low, "ing")
}

// correlates reports whether a word of the phrase asks for its other half: "not only", "either".
func (p phrase) correlates() bool {
	for i, w := range p {
		if w.low == "either" || w.low == "neither" || w.low == "whether" || w.low == "only" && i > 0 && p[i-1].low == "not" {
			return true
		}
	}
	return false
}

// subordinates reports whether a clause depends on another within the phrase.
func (p phrase) subordinates() bool {
	return slices.ContainsFunc(p, func(w word) bool { return subordinate[w.low] || w.low == "that" })
}

// attributes reports whether the phrase says whose statement it is, in a way that may go on after it: "according to", "says that".
func (p phrase) attributes() bool {
	return slices.ContainsFunc(p, func(w word) bool {
		return w.low == "according" || w.low == "that" || w.low == "laut" || w.low == "selon" || w.low == "según"
	})
}

// named reports whether a subject has a name in it.
func (p phrase) named() bool {
	return slices.ContainsFunc(p, func(w word) bool {
		first, _ := utf8.DecodeRuneInString(w.raw)
		return unicode.IsUpper(first)
	})
}

// shares reports whether a subject names something that the claim names too, so that it is told from it by its own words.
func (p phrase) shares(c *claim) bool {
	return slices.ContainsFunc(p, func(w word) bool {
		return c.has(func(t term) bool { return t.strong() && t.stem == stem(w.low) })
	})
}

// repeats reports whether a subject is "the mill" of which the claim speaks.
func (p phrase) repeats(language string, c *claim) bool {
	return definiteIn(language, p[0].low) && !p.named() && p[len(p)-1:].shares(c)
}

// qualified reports whether a subject says which thing it means: "the share of women".
func (p phrase) qualified() bool {
	return slices.ContainsFunc(p, func(w word) bool { return prepositions[w.low] })
}

// standAlone reports whether nothing in a clause points to what stands before it, and nothing that was said there is left out here:
// "they", "is higher", "gives 7", "a survey did". What is "its" is clear in a clause whose subject is a name.
func (p phrase) standAlone(named bool) bool {
	last := p[len(p)-1].low
	if auxiliaries[last] || prepositions[last] && last != "over" || determiners[last] || last == "own" {
		return false
	}
	than := slices.ContainsFunc(p, func(w word) bool { return w.low == "than" })
	if len(p) > 2 && definite[p[0].low] && abstract[p[1].low] && !prepositions[p[2].low] {
		return false // "the figure rose to 40"
	}
	for i, w := range p {
		switch {
		case ordinals[w.low] && !named && i > 0 && determiners[p[i-1].low]:
			return false // "the second line"
		case w.low == "such" && i+1 < len(p) && p[i+1].low == "as":
		case pronouns[w.low], comparatives[w.low] && !than, possessives[w.low] && !named:
			return false
		case w.low == "that" && i > 0 && prepositions[p[i-1].low]:
			return false // "rooms of that kind"
		case p.bare(i):
			return false
		}
	}
	return true
}

// bare reports whether a number of nothing stands at i: "gives 7", "356,000 in 2023", "has one in Moss". A year is none.
func (p phrase) bare(i int) bool {
	w := p[i]
	unit := strings.ContainsFunc(w.raw, func(r rune) bool {
		return unicode.IsLetter(r) || strings.ContainsRune("%‰°", r) || unicode.Is(unicode.Sc, r)
	})
	year := len(w.raw) == 4 && w.raw >= "1000" && w.raw <= "2199"
	if !numerals[w.low] && (!w.number || unit || year) {
		return false
	}
	if w.ends || i+1 == len(p) {
		return true
	}
	next := p[i+1].low
	return prepositions[next] || conjunctions[next] && (i+2 >= len(p) || !p[i+2].number)
}
