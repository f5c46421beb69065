package text

import (
	"strings"
	"unicode/utf8"
)

// Chunks packs sentences in their order into chunks of at most max characters, as many into each as fit; each sentence
// counts one character more for what separates it from the next. None is left out. A sentence that is longer than max is
// cut where white space is, else between two graphemes (one that is longer than max alone stays whole); each piece has
// its own offsets, and all the markers of the sentence, since they stand for all of it. max below 1 counts as 1.
func Chunks(sentences []Sentence, max int) [][]Sentence {
	if max < 1 {
		max = 1
	}
	var out [][]Sentence
	room := 0
	for _, whole := range sentences {
		for _, s := range cut(whole, max) {
			n := utf8.RuneCountInString(s.Text)
			if len(out) == 0 || n > room {
				out = append(out, nil)
				room = max
			}
			last := len(out) - 1
			out[last] = append(out[last], s)
			room -= n + 1
		}
	}
	return out
}

// cut divides a sentence into pieces of at most max characters.
func cut(s Sentence, max int) []Sentence {
	if len(s.Text) <= max || utf8.RuneCountInString(s.Text) <= max {
		return []Sentence{s}
	}
	var out []Sentence
	w := graphemeWalk{rest: s.Text, state: -1}
	start, count := 0, 0          // the piece that is open, and its characters
	space, after, tail := 0, 0, 0 // the last white space in it: begin and end, and the characters since
	emit := func(end int) {
		t := strings.TrimSpace(s.Text[start:end])
		if t == "" {
			return
		}
		from := s.Start + start + strings.Index(s.Text[start:end], t)
		out = append(out, Sentence{Start: from, End: from + len(t), Text: t, Markers: s.Markers, Kind: s.Kind})
	}
	for w.next() {
		cluster := s.Text[w.start:w.end]
		n := utf8.RuneCountInString(cluster)
		isSpace := strings.TrimSpace(cluster) == ""
		if count+n > max && isSpace {
			emit(w.start)
			start, count, tail = w.end, 0, 0
			space, after = start, start
			continue
		}
		if count+n > max && count > 0 {
			if space > start {
				emit(space)
				start, count = after, tail
			} else {
				emit(w.start)
				start, count = w.start, 0
			}
			if count+n > max && count > 0 {
				emit(w.start)
				start, count = w.start, 0
			}
			space, after, tail = start, start, count
		}
		count += n
		tail += n
		if isSpace {
			space, after, tail = w.start, w.end, 0
		}
	}
	emit(len(s.Text))
	return out
}
