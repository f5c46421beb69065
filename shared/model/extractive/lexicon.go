package extractive

import (
	"embed"
	"fmt"
	"strings"
	"sync"
)

//go:embed lexicon
var lexiconFiles embed.FS

// lexicon is what the engine knows of words: general language in a few tongues, nothing of any subject.
type lexicon struct {
	concepts map[string][]string        // phrase in stems -> names of the groups of synonyms it is in
	poles    map[string][]pole          // phrase in stems -> the pairs of opposites it is in
	classes  map[string]map[string]bool // section of words.txt -> phrases in stems, and words as written
	many     map[string]bool            // entries of several words, in stems; false: an entry only begins like that
	glyphs   map[string]bool            // phrases of scripts without spaces, for cutting runs of characters
}

// pole is one side of a pair of opposites.
type pole struct {
	axis       string
	positive   bool
	complement bool // a negation of the one side is the other
}

var words = sync.OnceValue(func() *lexicon {
	lex := &lexicon{concepts: map[string][]string{}, poles: map[string][]pole{}, classes: map[string]map[string]bool{}, many: map[string]bool{}, glyphs: map[string]bool{}}
	lex.readSynonyms()
	lex.readOpposites()
	lex.readWords()
	for key := range lex.concepts {
		lex.note(key)
	}
	for key := range lex.poles {
		lex.note(key)
	}
	for _, section := range lex.classes {
		for key := range section {
			lex.note(key)
		}
	}
	return lex
})

// note adds an entry of several words, and how it begins.
func (lex *lexicon) note(key string) {
	for i := range len(key) {
		if key[i] == ' ' && !lex.many[key[:i]] {
			lex.many[key[:i]] = false
		}
	}
	if strings.Contains(key, " ") {
		lex.many[key] = true
	}
}

// lines calls fn with every line of a lexicon file that is not empty and no comment.
func lines(name string, fn func(line string)) {
	data, err := lexiconFiles.ReadFile("lexicon/" + name)
	if err != nil {
		panic(fmt.Sprintf("extractive: %v", err)) // embedded: cannot be missing
	}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			fn(line)
		}
	}
}

func (lex *lexicon) readSynonyms() {
	lines("synonyms.txt", func(line string) {
		name := ""
		for phrase := range strings.SplitSeq(line, ",") {
			key := lex.phrase(phrase)
			if name == "" {
				name = key
			}
			lex.concepts[key] = append(lex.concepts[key], name)
		}
	})
}

func (lex *lexicon) readOpposites() {
	lines("opposites.txt", func(line string) {
		head, sides, ok := strings.Cut(line, " : ")
		kind, axis, ok2 := strings.Cut(head, " ")
		one, other, ok3 := strings.Cut(sides, "|")
		if !ok || !ok2 || !ok3 {
			panic("extractive: opposites.txt: " + line)
		}
		for i, side := range []string{one, other} {
			for phrase := range strings.SplitSeq(side, ",") {
				key := lex.phrase(phrase)
				lex.poles[key] = append(lex.poles[key], pole{axis: axis, positive: i == 0, complement: kind == "complement"})
			}
		}
	})
}

func (lex *lexicon) readWords() {
	var section map[string]bool
	asWritten := false
	lines("words.txt", func(line string) {
		if line[0] == '[' {
			section = map[string]bool{}
			name := strings.Trim(line, "[]")
			lex.classes[name] = section
			asWritten = name == "dangling" // the stem of German "dies" is "die"
			return
		}
		for word := range strings.FieldsSeq(line) {
			word = strings.ReplaceAll(word, "_", " ")
			section[word] = true
			if key := lex.phrase(word); key != "" && !asWritten {
				section[key] = true
			}
		}
	})
}

// smallWords has the small words of each language that [stop] has, one bit for each of its lines; the first two are one language.
var smallWords = sync.OnceValue(func() map[string]uint8 {
	out, line := map[string]uint8{}, -1
	lines("words.txt", func(words string) {
		switch {
		case words == "[stop]":
			line = 0
			return
		case words[0] == '[', line > 8:
			line = -1
		}
		if line < 0 {
			return
		}
		for word := range strings.FieldsSeq(words) {
			out[word] |= 1 << max(0, line-1)
		}
		line++
	})
	return out
})

// phrase turns a phrase into stems.
func (lex *lexicon) phrase(s string) string {
	fields := strings.Fields(s)
	for i, f := range fields {
		if spacelessText(f) {
			lex.glyphs[f] = true
		}
		fields[i] = stem(f)
	}
	return strings.Join(fields, " ")
}

// is reports whether a term belongs to a section of words.txt, as written or by its stem.
func (lex *lexicon) is(section, low, stem string) bool {
	c := lex.classes[section]
	return c[low] || c[stem]
}

var irregular = func() map[string]string {
	m := map[string]string{}
	for _, group := range strings.Split(`rise rose risen rising|fall fell fallen|grow grew grown growth|build built|make made|find found|begin began begun beginning|lose lost|win won|lead led|hold held|
		buy bought|sell sold|spend spent|pay paid|take took taken|give gave given|go went gone goes|come came|say said|show shown|know knew known|keep kept|leave left|meet met|
		run ran running|stand stood|become became|bring brought|catch caught|teach taught|think thought|write wrote written|speak spoke spoken|break broke broken|choose chose chosen|
		drive drove driven|fly flew flown|freeze froze frozen|sink sank sunk|shut shutting|shrink shrank shrunk|send sent|feel felt|deal dealt|draw drew drawn|eat ate eaten|drink drank drunk|
		die died dying dies|lie lay lain lying|child children|person people persons|man men|woman women|mouse mice|foot feet|wolf wolves|life lives|leaf leaves|knife knives|shelf shelves|
		tell told|see saw seen|get got gotten|set setting|put putting|cut cutting|hit hitting|let letting|sit sat sitting|swim swam swum swimming|sing sang sung|throw threw thrown|
		wear wore worn|ride rode ridden|sleep slept|bear bore born|hide hid hidden|steal stole stolen|shoot shot|fight fought|seek sought|withdraw withdrew withdrawn|overtake overtook overtaken|
		undergo underwent undergone|arise arose arisen|spread spreading|split splitting|cost costing costs|quit quitting|bid bidding|be being|do does did done|have has had|
		uphold upheld|overcome overcame|foresee foresaw foreseen|mislead misled|strike struck|tear tore torn|shake shook shaken|wake woke|bend bent|lend lent|bind bound|dig dug|hang hung|
		spin spun|stick stuck|sweep swept|feed fed|flee fled|breed bred|forbid forbade forbidden|forget forgot forgotten|beat beaten|bite bit bitten|blow blew blown|swear swore sworn|
		use uses used using|evening evenings|morning mornings|datum data|analysis analyses|crisis crises|basis bases|hypothesis hypotheses|species species|series series|bus buses|gas gases|virus viruses|status status|census census`, "|") {
		forms := strings.Fields(group)
		for _, f := range forms {
			m[f] = strings.TrimSuffix(forms[0], "e")
			if len(forms[0]) <= 3 {
				m[f] = forms[0]
			}
		}
	}
	return m
}()

// stem reduces an English word in lower case to what its inflections have in common; words of other scripts stay as they are.
func stem(w string) string {
	w = strings.TrimSuffix(strings.TrimSuffix(w, "'s"), "’s")
	w = strings.Trim(w, "'’")
	if s, ok := irregular[w]; ok {
		return s
	}
	if len(w) <= 3 {
		return w
	}
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4, strings.HasSuffix(w, "ied") && len(w) > 4:
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "xes"), strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "shes"), strings.HasSuffix(w, "zes"):
		w = w[:len(w)-2]
	case strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && !strings.HasSuffix(w, "is"):
		w = w[:len(w)-1]
	}
	if s, ok := irregular[w]; ok {
		return s
	}
	for _, suffix := range []string{"ing", "ed"} {
		base, found := strings.CutSuffix(w, suffix)
		if found && len(base) >= 3 && !strings.HasSuffix(w, "eed") && strings.ContainsAny(base, "aeiouy") {
			w = undouble(base)
			break
		}
	}
	if len(w) > 3 {
		w = strings.TrimSuffix(w, "e")
	}
	return w
}

func undouble(w string) string {
	n := len(w)
	if n > 3 && w[n-1] == w[n-2] && strings.IndexByte("bdgmnprt", w[n-1]) >= 0 {
		return w[:n-1]
	}
	return w
}

// derived are endings that a word may take without becoming another thing: "approve" and "approval", "adopté" and "adoptée". Endings
// for persons are missing on purpose: an employer is no employee.
var derived = map[string]bool{"": true, "e": true, "s": true, "al": true, "ion": true, "tion": true, "ation": true, "ment": true, "ance": true, "ence": true, "y": true, "ly": true,
	"é": true, "ée": true, "és": true, "ées": true, "a": true, "o": true, "os": true, "as": true, "n": true, "en": true, "es": true, "t": true, "te": true}

// kin reports whether one stem is the other with an ending of derived, or the German participle of its past ("kaufte" and "gekauft").
func kin(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if a == b || len(a) >= 4 && a[len(a)-1] == 't' && len(b) == len(a)+2 && b[:2] == "ge" && b[2:] == a {
		return true
	}
	rest, ok := strings.CutPrefix(b, a)
	return ok && len(a) >= 5 && derived[rest]
}

var negativePrefixes = []string{"un", "in", "im", "il", "ir", "non", "dis", "de"}

// negates reports whether one stem is the other with a prefix that turns it into its opposite.
func negates(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	rest, ok := strings.CutSuffix(b, a)
	if !ok || rest == "" || len(a) < 4 && (rest != "un" || len(a) < 3) {
		return false
	}
	rest = strings.TrimSuffix(rest, "-")
	for _, p := range negativePrefixes {
		if rest == p {
			return !misleading[b]
		}
	}
	return false
}

// misleading begin with a prefix that does not negate.
var misleading = map[string]bool{"invaluabl": true, "inflammabl": true, "inform": true, "income": true, "incom": true, "invest": true, "intend": true, "inside": true, "increas": true,
	"insert": true, "involv": true, "input": true, "impart": true, "imprint": true, "indent": true, "instant": true, "intent": true, "inhabit": true, "impress": true, "import": true,
	"inland": true, "depart": true, "defin": true, "deliver": true, "demand": true, "describ": true, "design": true, "derive": true, "decid": true, "debat": true, "decline": true,
	"discover": true, "discount": true, "dismiss": true, "dispos": true, "display": true, "distinct": true, "discuss": true, "illustrat": true, "under": true, "until": true, "union": true, "unit": true, "uncle": true}
