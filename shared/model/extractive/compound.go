package extractive

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/text"
)

// part is one of the claims that a sentence joins ("X [1], while Y [2]"), or a sentence that joins none.
type part struct {
	model.Numbered        // N is that of the sentence; Markers are the part's own, or those of the next part that has any
	plain          string // as a sentence of its own: without Markdown, marks and the word that joined it
	titled         bool   // only the heading of its section says what it is about
}

// parts divides sentence i into the claims that it joins, in order. The sentence stays one unless each claim is a whole clause, with a
// subject and a verb of its own, and says by itself what it says in the sentence: it must not lose a name, a year, a condition, a noun
// or whose statement it is. Words that join clauses are known for English only; semicolons are the same elsewhere.
func (r report) parts(i int) []part {
	s, plain := r.sentences[i], r.plain[i]
	if fitness(s.Text, plain, r.claims[i]) != whole || r.unfinished(i) || r.claims[i].has(func(t term) bool { return t.glyph }) {
		return r.undivided(i)
	}
	if len(s.Text) > maxCompound || strings.Contains(plain, ": ") {
		return r.undivided(i) // after a colon, the clauses are of what stands before it
	}
	if trails(s.Text) || framed(r.claims[i]) {
		return r.undivided(i)
	}
	joints := joints(s.Text)
	if len(joints) == 0 || len(joints) > maxJoints {
		return r.undivided(i) // no sentence for a reader: what it joins would be looked at once for each of its joints
	}
	var parts []part
	language := language(plain)
	start, at := 0, joint{}
	add := func(end int) {
		raw := s.Text[start:end]
		sentence := asSentence(raw, plain)
		if start > 0 {
			sentence = capital(at.given + sentence)
		}
		parts = append(parts, part{Numbered: model.Numbered{N: s.N, Text: raw, Markers: text.Markers(raw)}, plain: sentence, titled: at.titled})
	}
	listed := false // a comma of what may be a list was passed over
	for k, j := range joints {
		next := len(s.Text)
		if k+1 < len(joints) {
			next = joints[k+1].end
		}
		d := division{joint: j, language: language, left: s.Text[start:j.end], right: s.Text[j.start:next], rest: s.Text[j.start:], given: at.given}
		cut, ok := r.divides(i, d)
		if !ok || listed && j.word == "and" {
			listed = listed || j.word == ","
			continue
		}
		add(d.end)
		start, at, listed = d.start, cut, false
	}
	if len(parts) == 0 {
		return r.undivided(i)
	}
	add(len(s.Text))
	for k := len(parts) - 2; k >= 0; k-- {
		if len(parts[k].Markers) == 0 {
			parts[k].Markers = parts[k+1].Markers
		}
	}
	if first, rest, _ := strings.Cut(parts[0].plain, " "); conceding[strings.ToLower(first)] {
		parts[0].plain = capital(rest)
	}
	return parts
}

// Bounds of a sentence that is divided.
const (
	maxCompound = 2000 // bytes, Markdown and links included
	maxJoints   = 24
)

// undivided is sentence i as its only part.
func (r report) undivided(i int) []part {
	return []part{{Numbered: r.sentences[i], plain: r.plain[i]}}
}

// with is the report up to sentence i, which is replaced by its parts, if it has several.
func (r report) with(i int, parts []part) report {
	if len(parts) == 1 {
		return r
	}
	out := report{sentences: slices.Clone(r.sentences[:i]), places: slices.Clone(r.places[:i]), plain: slices.Clone(r.plain[:i]), claims: slices.Clone(r.claims[:i]), language: r.language, title: r.title, alike: r.alike}
	for _, p := range parts {
		out.sentences = append(out.sentences, p.Numbered)
		out.places = append(out.places, r.places[i])
		out.plain = append(out.plain, p.plain)
		out.claims = append(out.claims, read(p.plain))
	}
	return out
}

// joint is a place where a sentence may be cut.
type joint struct {
	end, start int    // bytes of the sentence: what stands before ends, what stands after begins
	word       string // what joins: ";", "," after a mark, or a word
	marked     bool   // a citation mark stands directly before
	given      string // what the part after has of the one before: the time that opens it ("In 2024, "), the subject ("the mill ")
	titled     bool
}

// joining are the words that join clauses that hold each by itself. Those that follow a semicolon only lead over.
var (
	joining     = wordSet("and but while whereas although though")
	leadingOver = []string{"and ", "but ", "while ", "whereas ", "however, ", "moreover, ", "meanwhile, ", "by contrast, ", "in contrast, ", "on the other hand, ", "in turn, "}
)

// trails reports whether words that are no clause of their own stand after the last mark of a sentence: in "X [1], and Y [2], if the tax is
// abolished" they may be meant for both.
func trails(s string) bool {
	all := mark.FindAllStringIndex(s, -1)
	if len(all) == 0 {
		return false
	}
	tail := strings.TrimLeft(s[all[len(all)-1][1]:], " ,")
	word, _, _ := strings.Cut(tail, " ")
	return strings.ContainsFunc(tail, unicode.IsLetter) && !strings.HasPrefix(tail, ";") && !slices.Contains([]string{"and", "but", "while", "whereas"}, word)
}

// mark is a citation mark as reports write it, with the address of one that is a link.
var mark = regexp.MustCompile(`(\[|【)\\?\^?\d[^\]】]*(\]|】)\]?(\([^)\s]*\))?`)

// framed reports whether a sentence begins with a word that holds for all of it, and that its second clause would lose.
func framed(c *claim) bool { return len(c.terms) > 0 && framing[c.terms[0].low] }

var framing = wordSet("allegedly reportedly supposedly apparently purportedly presumably probably possibly perhaps compared relative measured adjusted according unlike besides assuming given")

// joints finds the places where a sentence may be cut: none within brackets, quotations, links and code.
func joints(s string) []joint {
	var out []joint
	depth, low, quoted, code := 0, 0, false, false // low: German quotations open, which end with what begins an English one
	for i, c := range s {
		switch {
		case c == '`':
			code = !code
		case c == '"':
			quoted = !quoted
		case c == '“' && low > 0:
			low--
			depth--
		case c == '„':
			low++
			depth++
		case strings.ContainsRune("([{“«", c):
			depth++
		case c == '”' && low > 0: // „so” too
			low--
			depth--
		case strings.ContainsRune(")]}”»", c):
			depth--
		}
		if depth < 0 {
			return nil
		}
		if c != ' ' || depth > 0 || quoted || code || strings.HasPrefix(s[i+1:], "[") || strings.HasPrefix(s[i+1:], `\[`) {
			continue
		}
		marked, comma, semicolon := ending(s[:i])
		word, _, _ := strings.Cut(s[i+1:], " ")
		switch {
		case semicolon:
			j := joint{end: i, start: i + 1, word: ";", marked: marked}
			for _, lead := range leadingOver {
				if strings.HasPrefix(s[j.start:], lead) {
					j.start += len(lead)
					break
				}
			}
			out = append(out, j)
		case joining[word] && (comma || marked):
			out = append(out, joint{end: i, start: i + 1 + len(word) + 1, word: word, marked: marked})
		case comma && marked:
			out = append(out, joint{end: i, start: i + 1, word: ",", marked: true})
		}
	}
	if depth != 0 || quoted || code {
		return nil
	}
	after := 0
	return slices.DeleteFunc(out, func(j joint) bool {
		if j.end <= after || j.start >= len(s) {
			return true // nothing is left between two, or after the last
		}
		after = j.start
		return false
	})
}

// ending tells what a text ends with: citation marks, a comma, a semicolon, in any order.
func ending(s string) (marked, comma, semicolon bool) {
	for {
		s = strings.TrimRight(s, " *_")
		switch {
		case strings.HasSuffix(s, ","):
			comma = true
		case strings.HasSuffix(s, ";"):
			semicolon = true
		default:
			if !strings.HasSuffix(s, "]") && !strings.HasSuffix(s, "】") && !strings.HasSuffix(s, ")") {
				return marked, comma, semicolon
			}
			open := strings.LastIndexAny(s, "[【")
			if open < 0 {
				return marked, comma, semicolon
			}
			for open > 0 && strings.IndexByte(`[\(`, s[open-1]) >= 0 {
				open--
			}
			if len(text.Markers(s[open:])) == 0 || text.StripMarkers(s[open:]) != "" {
				return marked, comma, semicolon
			}
			marked, s = true, s[:open]
			continue
		}
		s = s[:len(s)-1]
	}
}

// asSentence is a part of a sentence as a person reads it, with the stop of the whole sentence.
func asSentence(raw, sentence string) string {
	s := strings.TrimRight(withoutMarkup(raw), " ,;")
	if stopped(sentence) && !stopped(s) {
		s += "."
	}
	return s
}

func stopped(s string) bool { return strings.HasSuffix(strings.TrimRight(s, "\"”»)"), ".") }

// division is a sentence that might be cut at a joint.
type division struct {
	joint
	language    string
	left, right string // the part that ends there, and the clause that begins there
	rest        string // the sentence from there on
	given       string // what the left part has of the one before it
}

// divides reports whether the sentence may be cut there, and notes in the joint what the right side needs to stand alone.
func (r report) divides(i int, d division) (j joint, ok bool) {
	j = d.joint
	first, _ := utf8.DecodeRuneInString(d.right)
	if d.language != "en" && j.word != ";" || !unicode.IsLetter(first) && !unicode.IsDigit(first) || enumerated.MatchString(d.right) {
		return j, false
	}
	if strings.Contains(d.right, " had ") && read(d.left).has(func(t term) bool { return words().is("attribution", t.low, t.stem) }) {
		return j, false // reported speech goes on: "said it had sold X, and Y had sold Z"
	}
	ownLeft, ownRest := len(text.Markers(d.left)) > 0, len(text.Markers(d.rest)) > 0
	leftText, rightText := d.given+asSentence(d.left, r.plain[i]), asSentence(d.right, r.plain[i])
	a := wordsOf(leftText)
	if len(a) > 0 && conceding[a[0].low] {
		if !j.marked || j.word != "," {
			return j, false
		}
		a = a[1:]
	}
	verbA := a.verb(d.language)
	if verbA < 0 || a.correlates() {
		return j, false
	}
	subject := ""
	if j.marked && ownRest && j.word != ";" {
		subject = a.subjectOf(verbA, wordsOf(rightText), leftText)
		rightText = subject + rightText
	}
	b := wordsOf(rightText)
	verbB := b.verb(d.language)
	if verbB < 0 || j.word == "while" && b.goesOn(verbB) {
		return j, false
	}
	left, right := read(leftText), read(rightText)
	if fitness(d.left, leftText, left) != whole || fitness(d.right, rightText, right) != whole || right.figureOnly() {
		return j, false
	}
	frame, ok := frameFor(a, b, left, right, j.marked)
	if !ok {
		return j, false
	}
	j.given = frame + subject
	subjectB := b[:verbB]
	tied := subjectB.named() || subjectB.shares(left)
	switch {
	case subject != "":
		return j, b[verbB:].standAlone(subjectB.named())
	case leaning(rightText, right) == before || possessives[b[0].low]:
		if tied = r.names(i, leftText, rightText) && b[1:].standAlone(true); !tied {
			return j, false
		}
	case subjectB.repeats(d.language, left) || !b.standAlone(subjectB.named()):
		return j, false
	}
	unclear := !tied && definiteIn(d.language, b[0].low)
	j.titled = unclear && j.word == ";" && r.section(i) != ""
	switch {
	case unclear && !j.titled && !subjectB.qualified():
		return j, false // "and the budget": whose
	case (j.word == "although" || j.word == "though") && !tied:
		return j, false // "although small firms have until June": an exception to what stands before
	case j.marked || ownLeft && ownRest:
		return j, true
	case ownLeft:
		return j, false // a mark within the left part, none after it: it may be meant for both
	case j.word == ";" && a.attributes():
		return j, false // both may be what one source says
	case j.word == ";" && tied:
		return j, true
	case len(left.dates) > 0 != (len(right.dates) > 0):
		return j, false // the year may be that of both
	case j.word == ";":
		return j, j.titled
	}
	said := left.has(term.bySource) || right.has(term.bySource)
	return j, tied && !said && !strings.Contains(leftText, ",") && !a.subordinates()
}

// names reports whether the left part of sentence i has the name that the first words of the right one stand for.
func (r report) names(i int, left, right string) bool {
	numbered := model.Numbered{N: r.sentences[i].N}
	divided := r.with(i, []part{{Numbered: numbered, plain: capital(left)}, {Numbered: numbered, plain: right}})
	name, _ := divided.referent(i+1, divided.claims[i+1])
	return name != ""
}

// figureOnly reports whether a source states no more than a figure: of what, was said before ("a test found 12 years").
func (c *claim) figureOnly() bool {
	verb := slices.IndexFunc(c.terms, func(t term) bool { return t.says && t.low != "measures" || t.low == "gives" || t.low == "gave" }) // a river measures
	return verb > 0 && len(c.quantities)+len(c.asideQuantities) > 0 && !slices.ContainsFunc(c.terms[verb+1:], func(t term) bool { return t.kind == content })
}

// enumerated are beginnings that Markdown takes for the mark of a list.
var enumerated = regexp.MustCompile(`^[0-9]+[.)] `)

func (t term) bySource() bool { return t.source }

// frameFor returns the time that opens the left part and holds for the right one too ("In 2024, "), "" if there is none. It is not ok if
// the left part opens with anything else that may hold for both ("In Japan", "If the plant opens").
func frameFor(a, b phrase, left, right *claim, marked bool) (frame string, ok bool) {
	first, ownFrame := a[0].low, prepositions[b[0].low]
	switch {
	case !prepositions[first] && !subordinate[first], ownFrame:
		return "", true
	case first == "according":
		return "", marked
	case first != "in" || len(left.dates) == 0 || left.dates[0].Start != len("in "):
		return "", false
	case len(right.dates) > 0:
		return "", true
	}
	return left.text[:left.dates[0].End] + ", ", true
}
