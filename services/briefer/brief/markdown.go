package brief

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/text"
)

// How much of a fact the list at the end shows, in characters, and how long a URL may be that is linked, in bytes. They keep
// a brief of 60 disputes and 60 facts readable, and its event far below the 1 MiB that a message may have.
const (
	maxListed = 400
	maxTitle  = 120
	maxURL    = 1000
)

// render writes a brief as Markdown: a section for each kind of sentence, a mark [n] for each fact, and the facts so numbered
// with their sources. Everything that comes from outside stands there as plain text; the links are those of the sources and no
// others. It is pure.
func render(w material, b event.BriefWritten) string {
	p := page{facts: w.facts, numbers: map[string]int{}}
	pairs := map[string][]string{}
	for _, d := range w.disputes {
		pairs[d.pair] = []string{d.elder, d.newer}
	}
	p.line("## Findings\n")
	for _, s := range b.Findings {
		p.item(s.Text, s.Facts)
	}
	switch {
	case len(b.Findings) > 0:
	case len(w.facts) == 0:
		p.line("No facts are known yet.")
	default:
		p.line("Nothing is settled yet.")
	}
	if len(b.Disputed) > 0 {
		p.line("\n## Disputed\n")
		for _, s := range b.Disputed {
			p.item(s.Text, pairs[s.Contradiction])
			for _, id := range w.seeAlso[s.Contradiction] {
				p.WriteString("  - See also: " + escape(w.facts[id].statement))
				p.mark([]string{id})
				p.WriteByte('\n')
			}
		}
		if more := len(w.disputes) - len(b.Disputed); more > 0 {
			p.line("\n%s not mentioned here.", plural(more, "more open contradiction is", "more open contradictions are"))
		}
	}
	if n := len(w.withheld); n > 0 {
		p.WriteString("\n" + plural(n, "fact is not among the findings, because it repeats one side of a dispute above or depends on it", "facts are not among the findings, because each repeats one side of a dispute above or depends on it") + ":")
		p.mark(w.withheld)
		p.WriteString(".\n")
	}
	if len(b.Gaps) > 0 {
		p.line("\n## Gaps\n")
		for _, s := range b.Gaps {
			p.item(s, nil)
		}
	}
	if len(b.Relationships) > 0 {
		p.line("\n## Relationships\n")
		for _, s := range b.Relationships {
			p.item(s.Text, s.Facts)
		}
	}
	p.list()
	p.colophon(w, b)
	return p.String()
}

// page is Markdown under work. Facts are numbered in the order in which they are cited.
type page struct {
	strings.Builder
	facts   map[string]cited
	numbers map[string]int
	order   []string
}

func (p *page) line(format string, args ...any) {
	fmt.Fprintf(p, format+"\n", args...)
}

// item writes a sentence with the marks of its facts.
func (p *page) item(sentence string, facts []string) {
	p.WriteString("- " + escape(sentence))
	p.mark(facts)
	p.WriteByte('\n')
}

// mark writes the marks of facts in the order of their numbers, each with a space before it.
func (p *page) mark(facts []string) {
	var numbers []int
	for _, id := range facts {
		if p.numbers[id] == 0 {
			p.order = append(p.order, id)
			p.numbers[id] = len(p.order)
		}
		numbers = append(numbers, p.numbers[id])
	}
	slices.Sort(numbers)
	for _, n := range slices.Compact(numbers) {
		fmt.Fprintf(p, " [%d]", n)
	}
}

// list writes the facts that were cited.
func (p *page) list() {
	if len(p.order) == 0 {
		return
	}
	p.line("\n## Facts\n")
	for i, id := range p.order {
		f := p.facts[id]
		p.line("%d. %s %s", i+1, escape(text.Truncate(plain(f.statement), maxListed)), origin(f.source))
	}
}

// colophon says who wrote the brief, what it leaves out, and what of it was recorded earlier.
func (p *page) colophon(w material, b event.BriefWritten) {
	writer := "the extractive engine, without a language model,"
	if b.Engine != model.EngineExtractive {
		writer = escape(b.Model) + " (" + escape(b.Engine) + ")"
	}
	p.line("\n---\n\nWritten by %s from %d of %s that %s brought.", writer,
		len(w.task.Facts)-len(w.withheld), plural(len(w.facts), "fact", "facts"), plural(w.runs, "run", "runs"))
	if w.leftOut > 0 {
		p.line("%s left out: pinned ones, those closest to the question, well supported and newer ones came first.", plural(w.leftOut, "fact was", "facts were"))
	}
	if w.unkept > 0 {
		p.line("%s not kept: each run keeps the %d surest.", plural(w.unkept, "more statement of the reports was", "more statements of the reports were"), notebook.MaxFacts)
	}
	if b.DroppedSentences > 0 {
		p.line("%s dropped (%s).", plural(b.DroppedSentences, "sentence was", "sentences were"), strings.Join(causes(b.Dropped), ", "))
	}
	if s := provenance(w); s != "" {
		p.line("\n%s", s)
	}
}

// provenance says that facts come from recordings; "" if none do.
func provenance(w material) string {
	facts := 0
	for _, f := range w.facts {
		facts += rank(f.recorded)
	}
	const not = ", not from research done for this question."
	switch {
	case facts == len(w.facts) && w.recorded == w.runs && w.runs > 0:
		return "Made from " + several(w.recorded, "a recorded run", "recorded runs") + not
	case facts > 0:
		return fmt.Sprintf("%d of %s %s from %s", facts, plural(len(w.facts), "fact", "facts"), several(facts, "comes", "come"), several(w.recorded, "a recorded run", "recorded runs")) + not
	}
	return ""
}

// causes names in words why sentences were dropped or mended.
func causes(dropped map[string]int) []string {
	var out []string
	for _, cause := range slices.Sorted(maps.Keys(dropped)) {
		if cause != model.DropLeftOut && cause != droppedInDispute {
			out = append(out, strings.ReplaceAll(cause, "_", " "))
		}
	}
	return out
}

func plural(n int, one, many string) string { return fmt.Sprintf("%d %s", n, several(n, one, many)) }

func several(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// origin is the source of a fact: its title, linked, with the site beside it, since a title can say anything.
func origin(s *event.Source) string {
	if s == nil {
		return "(no single source)"
	}
	target, host := link(s.URL)
	title, site := text.Truncate(plain(s.Title), maxTitle), host
	if title == "" {
		title, site = cmp.Or(host, "untitled"), ""
	}
	out := escape(title)
	if target != "" {
		out = "[" + out + "](<" + target + ">)"
	}
	if site != "" {
		out += ", " + escape(site)
	}
	if s.PublishedAt != nil {
		out += ", " + s.PublishedAt.UTC().Format(time.DateOnly)
	}
	return "(" + out + ")"
}

// link gives a URL as it can stand between < and > in a link, and its host. Both are empty when it is no address of the web; the URL
// alone is when it is too long.
func link(raw string) (target, host string) {
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", ""
	}
	host = text.Truncate(strings.TrimPrefix(plain(u.Hostname()), "www."), maxTitle)
	if u.User != nil { // user@host is how an address pretends to be another
		u.User = nil
	}
	var b strings.Builder
	for _, c := range []byte(u.String()) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("<>\\`\"'|", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	target = entity.ReplaceAllString(b.String(), `\&$1`)
	if len(target) > maxURL {
		return "", host
	}
	return target, host
}

// entity is what Markdown would take for one character, also inside a link's target.
var entity = regexp.MustCompile(`&(#?[0-9A-Za-z]+;)`)

// plain is a text of outside as one line without characters that hide or turn what stands beside them.
func plain(s string) string {
	return text.Normalise(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == 0xFEFF:
			return -1
		}
		return r
	}, s))
}

// escape makes a text stand in Markdown as it is: no emphasis, link, image, code, table, HTML or entity, no address that a
// renderer would link by itself, and nothing at its start that would begin a list, a heading or a rule.
func escape(s string) string {
	s = plain(s)
	var b strings.Builder
	b.Grow(len(s) + 8)
	for i, r := range s {
		switch r {
		case '\\', '`', '*', '_', '[', ']', '<', '>', '&', '|', '~', '@':
			b.WriteByte('\\')
		case ':':
			if strings.HasPrefix(s[i:], "://") {
				b.WriteByte('\\')
			}
		case '.':
			if i >= 3 && strings.EqualFold(s[i-3:i], "www") {
				b.WriteByte('\\')
			}
		}
		b.WriteRune(r)
	}
	return listStart.ReplaceAllString(blockStart.ReplaceAllString(b.String(), `\$0`), `$1\$2`)
}

// What begins a block at the start of a line: a bullet, a heading or a rule, and the number of a list.
var (
	blockStart = regexp.MustCompile(`^[-+#=]`)
	listStart  = regexp.MustCompile(`^(\d{1,9})([.)](?:\s|$))`)
)
