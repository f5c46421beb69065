package extractive

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/text"
)

// plan asks what the task itself leaves open, and nothing else: open contradictions first, then the gaps that the provider named, then what
// the facts leave open (see followUps), then thin topics that name something of their own. Each question carries what it is about, so that
// it can be put to a search by itself. Nothing open gives no question.
func plan(task model.QuestionsTask) model.QuestionsReply {
	reply := model.QuestionsReply{Questions: []model.PlannedQuestion{}}
	p := phrasesFor(task.Root)
	add := func(score float64, reason, question string) {
		reply.Questions = append(reply.Questions, model.PlannedQuestion{Text: question, Reason: reason, Score: score})
	}
	for _, c := range task.Contradictions {
		add(0.9, p.reasonContradiction, fmt.Sprintf(p.contradiction, quoteWhole(c.A, maxQuoted), quoteWhole(c.B, maxQuoted)))
	}
	for _, gap := range task.Gaps {
		if gap = openQuestion(gap); gap == "" || sameQuestion(gap, task.Root) {
			continue // an answer to the whole question that is called partial says nothing of what is missing
		}
		if strings.ContainsAny(lastRune(gap), "?？؟") && !strings.Contains(strings.TrimRight(gap, "?？؟"), "?") {
			add(0.8, p.reasonGap, cut(gap, maxAsked))
			continue
		}
		add(0.7, p.reasonGap, fmt.Sprintf(p.gap, quoteWhole(task.Root, maxRoot), quoteWhole(gap, maxQuoted)))
	}
	followUps, answered := followUps(task, p)
	for _, f := range followUps {
		add(f.score, f.reason, f.question)
	}
	for _, topic := range task.ThinTopics {
		if topic = strings.TrimSpace(topic); answered && specific(topic, task.Root) {
			add(0.5, p.reasonThin, contracted(fmt.Sprintf(p.thin, quoteWhole(task.Root, maxRoot), Quoted(topic, maxTopic)), p))
		}
	}
	return reply
}

// contracted is a question about a topic with the article that Spanish joins to "de".
func contracted(question string, p phrasing) string {
	if p.thin != phrasings["es"].thin {
		return question
	}
	return strings.Replace(question, "se sabe de el ", "se sabe del ", 1)
}

// openQuestion is a gap without what stands in brackets behind a question ("When does it open? (Partly: a date for the north wing.)"):
// that tells what is known of it, and a search is to be asked for the rest.
func openQuestion(gap string) string {
	gap = strings.TrimSpace(gap)
	for _, mark := range []string{"?", "？", "؟"} {
		if i := strings.Index(gap, mark+" ("); i > 0 && strings.HasSuffix(gap, ")") {
			return gap[:i+len(mark)]
		}
	}
	return gap
}

func sameQuestion(a, b string) bool {
	return slices.Equal(text.Words(strings.ToLower(a)), text.Words(strings.ToLower(b)))
}

// How much of a text a question quotes, in characters: a question has room for 2,000, and a statement at most 600, so that it stands there as a
// whole.
const (
	maxAsked  = 1500
	maxQuoted = maxJoined
	maxRoot   = 600
	maxTopic  = 80
)

// quoteWhole is a text as Quoted has it that still is a whole sentence where it is shorter: what does not fit goes from the end of a sentence on, or of
// a clause. Only a text without either is cut at a word.
func quoteWhole(s string, max int) string {
	s = strings.Join(strings.Fields(s), " ")
	if one := strings.TrimRight(s, ".。?？! "); utf8.RuneCountInString(one) <= max {
		return one
	}
	end := 0
	for _, sentence := range sentencesOf(s) {
		if utf8.RuneCountInString(strings.TrimRight(s[:sentence.End], ".。?？! ")) > max {
			break
		}
		end = sentence.End
	}
	for _, at := range clauseEnds.FindAllStringIndex(s, -1) {
		if at[0] > end && utf8.RuneCountInString(s[:at[0]]) <= max && len(strings.Fields(s[:at[0]])) >= minWords {
			end = at[0]
		}
	}
	if end == 0 {
		return Quoted(s, max)
	}
	return strings.TrimRight(s[:end], ".。?？!,; ")
}

// clauseEnds are where a sentence could end: before what only adds to it.
var clauseEnds = regexp.MustCompile(`;\s|；|\s[–—]\s|,\s(?:and|but|so|while|whereas|because|although|und|aber|sondern|weil|während|obwohl|et|mais|car|parce|y|pero|porque|aunque)\s`)

// Quoted is a text as it can stand between quotation marks inside a sentence: one line of at most max characters, cut at a word, without
// its full stop.
func Quoted(s string, max int) string {
	s = strings.Join(strings.Fields(s), " ")
	return cut(strings.TrimRight(s, ".。?？! "), max) // French sets a space before its marks
}

// cut shortens a text to at most max characters, the "…" that then ends it included. It ends with a whole word, unless one word is most
// of what there is, as in a script without spaces.
func cut(s string, max int) string {
	short := text.Truncate(s, max)
	kept, shortened := strings.CutSuffix(short, "…")
	if !shortened || short == s || strings.HasPrefix(s[len(kept):], " ") {
		return short
	}
	if space := strings.LastIndexByte(kept, ' '); space > len(kept)/2 {
		return strings.TrimRight(kept[:space], " ,;:–—-([“„«") + "…"
	}
	return short
}

func lastRune(s string) string {
	r := []rune(s)
	if len(r) == 0 {
		return ""
	}
	return string(r[len(r)-1])
}

// phrasing holds the sentences that the engine writes itself, in one language.
type phrasing struct {
	contradiction, gap, thin                                           string // questions
	missing, lacking, overdue, old, sole                               string
	reasonContradiction, reasonGap, reasonThin                         string
	reasonMissing, reasonLacking, reasonOverdue, reasonOld, reasonSole string
	disputed, uncovered, shared, whether                               string // sentences of a brief
}

var phrasings = map[string]phrasing{
	"en": {
		contradiction: "Which is right: “%s”, or “%s”?",
		gap:           "On the question “%s”: what is known about this open point: %s?",
		thin:          "On the question “%s”: what else is known about %s?",

		missing:       "On the question “%s”: what is known about %s?",
		lacking:       "On the question “%s”: what is known about %s: %s?",
		overdue:       "Has this come about since: “%s”?",
		old:           "Does this still hold, which was published on %[2]s: “%[1]s”?",
		sole:          "Which other sources confirm or deny this: “%s”?",
		reasonMissing: "The question asks about it, and no fact speaks of it.",
		reasonLacking: "Facts speak of this for others only.",
		reasonOverdue: "The date that was announced has passed.",
		reasonOld:     "The source is old.",
		reasonSole:    "One page alone states it.",

		reasonContradiction: "Two facts contradict each other.",
		reasonGap:           "The last research named this gap.",
		reasonThin:          "The topic has few facts.",
		disputed:            "“%s” stands against “%s”.",
		uncovered:           "No fact so far speaks of: %s.",
		shared:              "%s and %s are named together.",
		whether:             "No fact so far says %s.",
	},
	"de": {
		contradiction: "Was trifft zu: „%s“ oder „%s“?",
		gap:           "Zur Frage „%s“: Was ist über diesen offenen Punkt bekannt: %s?",
		thin:          "Zur Frage „%s“: Was ist noch über %s bekannt?",

		missing:       "Zur Frage „%s“: Was ist über %s bekannt?",
		lacking:       "Zur Frage „%s“: Was ist über %s bekannt: %s?",
		overdue:       "Ist das inzwischen eingetreten: „%s“?",
		old:           "Gilt das noch, veröffentlicht am %[2]s: „%[1]s“?",
		sole:          "Welche anderen Quellen bestätigen oder bestreiten das: „%s“?",
		reasonMissing: "Die Frage nennt es, und kein Fakt spricht davon.",
		reasonLacking: "Davon sprechen Fakten nur für andere.",
		reasonOverdue: "Der angekündigte Zeitpunkt ist vorbei.",
		reasonOld:     "Die Quelle ist alt.",
		reasonSole:    "Nur eine Seite sagt das.",

		reasonContradiction: "Zwei Fakten widersprechen sich.",
		reasonGap:           "Die letzte Recherche nannte diese Lücke.",
		reasonThin:          "Zum Thema gibt es wenige Fakten.",
		disputed:            "„%s“ steht gegen „%s“.",
		uncovered:           "Bisher spricht kein Fakt von: %s.",
		shared:              "%s und %s werden zusammen genannt.",
		whether:             "Bisher sagt kein Fakt, %s.",
	},
	"fr": {
		contradiction: "Qu'est-ce qui est exact : « %s » ou « %s » ?",
		gap:           "Sur la question « %s » : que sait-on de ce point ouvert : %s ?",
		thin:          "Sur la question « %s » : que sait-on d'autre sur %s ?",

		missing:       "Sur la question « %s » : que sait-on de ce point : %s ?",
		lacking:       "Sur la question « %s » : que sait-on de %s : %s ?",
		overdue:       "Cela s'est-il réalisé depuis : « %s » ?",
		old:           "Est-ce toujours vrai (publié le %[2]s) : « %[1]s » ?",
		sole:          "Quelles autres sources confirment ou contestent ceci : « %s » ?",
		reasonMissing: "La question le demande et aucun fait n'en parle.",
		reasonLacking: "Des faits n'en parlent que pour d'autres.",
		reasonOverdue: "La date annoncée est passée.",
		reasonOld:     "La source est ancienne.",
		reasonSole:    "Une seule page l'affirme.",

		reasonContradiction: "Deux faits se contredisent.",
		reasonGap:           "La dernière recherche a nommé cette lacune.",
		reasonThin:          "Ce thème a peu de faits.",
		disputed:            "« %s » s'oppose à « %s ».",
		uncovered:           "Aucun fait ne parle encore de : %s.",
		shared:              "%s et %s sont nommés ensemble.",
		whether:             "Aucun fait ne dit encore %s.",
	},
	"es": {
		contradiction: "¿Qué es correcto: «%s» o «%s»?",
		gap:           "Sobre la pregunta «%s»: ¿qué se sabe de este punto abierto: %s?",
		thin:          "Sobre la pregunta «%s»: ¿qué más se sabe de %s?",

		missing:       "Sobre la pregunta «%s»: ¿qué se sabe de este punto: %s?",
		lacking:       "Sobre la pregunta «%s»: ¿qué se sabe de %s: %s?",
		overdue:       "¿Se ha cumplido ya esto: «%s»?",
		old:           "¿Sigue siendo cierto (publicado el %[2]s): «%[1]s»?",
		sole:          "¿Qué otras fuentes confirman o desmienten esto: «%s»?",
		reasonMissing: "La pregunta lo pide y ningún hecho habla de ello.",
		reasonLacking: "Los hechos hablan de ello solo para otros.",
		reasonOverdue: "La fecha anunciada ya pasó.",
		reasonOld:     "La fuente es antigua.",
		reasonSole:    "Solo una página lo afirma.",

		reasonContradiction: "Dos hechos se contradicen.",
		reasonGap:           "La última investigación nombró esta laguna.",
		reasonThin:          "El tema tiene pocos hechos.",
		disputed:            "«%s» se opone a «%s».",
		uncovered:           "Ningún hecho habla todavía de: %s.",
		shared:              "%s y %s se nombran juntos.",
		whether:             "Ningún hecho dice todavía %s.",
	},
	"ja": {
		contradiction: "「%s」と「%s」のどちらが正しいですか。",
		gap:           "「%s」という問いについて、次の未解決の点は何が知られていますか：%s",
		thin:          "「%s」という問いについて、%sはほかに何が知られていますか。",

		missing:       "「%s」という問いについて、%sは何が知られていますか。",
		lacking:       "「%s」という問いについて、%sの%sは何が知られていますか。",
		overdue:       "「%s」はその後実現しましたか。",
		old:           "「%[1]s」（%[2]s公開）は今も当てはまりますか。",
		sole:          "「%s」を裏付ける、または否定するほかの情報源はありますか。",
		reasonMissing: "問いにあるのに、これについての事実がありません。",
		reasonLacking: "ほかのものについてしか事実がありません。",
		reasonOverdue: "予告された時期を過ぎています。",
		reasonOld:     "情報源が古いです。",
		reasonSole:    "一つのページだけが述べています。",

		reasonContradiction: "二つの事実が矛盾しています。",
		reasonGap:           "前回の調査がこの不足を挙げました。",
		reasonThin:          "この話題の事実は少ないです。",
		disputed:            "「%s」は「%s」と矛盾しています。",
		uncovered:           "次についての事実はまだありません：%s。",
		shared:              "%sと%sは一緒に挙げられています。",
	},
	"zh": {
		contradiction: "哪一个正确：“%s”，还是“%s”？",
		gap:           "关于问题“%s”：以下未解决的方面有哪些已知信息：%s？",
		thin:          "关于问题“%s”：关于%s还知道什么？",

		missing:       "关于问题“%s”：关于%s有哪些已知信息？",
		lacking:       "关于问题“%s”：关于%s的%s有哪些已知信息？",
		overdue:       "“%s”后来实现了吗？",
		old:           "“%[1]s”（发布于%[2]s）现在仍然成立吗？",
		sole:          "还有哪些来源证实或否认：“%s”？",
		reasonMissing: "问题涉及这一点，但没有事实提到。",
		reasonLacking: "只有关于其他对象的事实。",
		reasonOverdue: "所宣布的时间已过。",
		reasonOld:     "来源较旧。",
		reasonSole:    "只有一个页面这样说。",

		reasonContradiction: "两个事实相互矛盾。",
		reasonGap:           "上次研究指出了这一空白。",
		reasonThin:          "该主题的事实较少。",
		disputed:            "“%s”与“%s”相矛盾。",
		uncovered:           "尚无事实涉及：%s。",
		shared:              "%s与%s被一同提到。",
	},
}

// phrasesFor returns the sentences in the language of a question, English if it is none of the six.
func phrasesFor(question string) phrasing { return phrasings[language(question)] }

// languageWords are frequent small words that tell one language from the others.
var languageWords = map[string]map[string]bool{
	"en": wordSet("the of and is are was what which how why when who does do in to for with from on"),
	"de": wordSet("in an im der die das und ist sind wie was welche welcher wann warum wer nicht mit für von zu im den ein eine werden"),
	"fr": wordSet("le la les des est sont quel quelle quels quelles comment pourquoi quand qui et pour dans sur avec une du"),
	"es": wordSet("el los las es son qué cuál cuáles cómo cuándo por quién para con una del y en"),
}

// languageLetters are letters that speak for a language where its words alone leave it open: "Was kostet ..." may be English.
var languageLetters = map[string]string{"de": "äöüß", "fr": "àâçèêëîïôùûœ", "es": "áíóúñ¿¡"}

var wordSet = text.WordSet

// language guesses the language of a text: by its script, else by its small words. What was guessed lately is remembered.
func language(s string) string {
	l, ok := latelyGuessed.find(s)
	if !ok {
		l = guessed(s)
		latelyGuessed.keep(s, l)
	}
	return l
}

func guessed(s string) string {
	han, ascii := false, true
	for _, r := range s {
		switch {
		case r >= 0x3041 && r <= 0x30ff:
			return "ja"
		case r >= 0x4e00 && r <= 0x9fff:
			han = true
		}
		ascii = ascii && r < utf8.RuneSelf
	}
	if han {
		return "zh"
	}
	var counts [len(tongues)]int
	for w := range text.WordsSeq(s) {
		in := speaking[w]
		for i := range counts {
			counts[i] += int(in >> i & 1)
		}
	}
	best, most, low := "en", 0, ""
	if !ascii { // all letters that speak for a language are beyond
		low = strings.ToLower(s)
	}
	for i, lang := range tongues {
		n := counts[i]
		if n > 0 && strings.ContainsAny(low, languageLetters[lang]) {
			n++
		}
		if n > most {
			best, most = lang, n
		}
	}
	return best
}

// tongues are the languages that are told by their words, and speaking says for each word, by a bit, which of them have it.
var (
	tongues  = [...]string{"en", "de", "fr", "es"}
	speaking = func() map[string]uint8 {
		out := map[string]uint8{}
		for i, lang := range tongues {
			for w := range languageWords[lang] {
				out[w] |= 1 << i
			}
		}
		return out
	}()
)
