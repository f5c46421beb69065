package extractive

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// NamesPerson reports whether a name, as far as the statement that has it can tell, is that of a person: two or three words with capitals and
// none for an organisation or place, with a title or a role beside it, or with what persons do. Of Chinese and Japanese names it knows those
// with a form of address behind them. In doubt it is none.
func NamesPerson(name, statement string) bool {
	name = strings.TrimSpace(name)
	low := strings.ToLower(statement)
	at := strings.Index(low, strings.ToLower(name))
	if name == "" || at < 0 || len(low) != len(statement) {
		return false
	}
	written, before, after := statement[at:at+len(name)], statement[:at], statement[at+len(name):]
	for _, address := range addresses {
		if strings.HasPrefix(after, address) || strings.HasSuffix(written, address) {
			return true
		}
	}
	fields := strings.Fields(written)
	titled := len(fields) > 1 && titles[bareWord(fields[0])]
	if titled {
		fields = fields[1:]
	}
	if len(fields) < 1 || len(fields) > 3 {
		return false
	}
	for i, w := range fields {
		first, _ := utf8.DecodeRuneInString(w)
		particle := i > 0 && nobiliary[strings.ToLower(w)]
		if !unicode.IsUpper(first) && !particle || strings.ContainsAny(w, "0123456789&-") || utf8.RuneCountInString(w) > 2 && w == strings.ToUpper(w) || organisations[strings.ToLower(w)] || generalWordOf(w) {
			return false
		}
	}
	if titled {
		return true
	}
	preceding, following := wordsOf(before), wordsOf(after)
	if n := len(preceding); n > 0 && !preceding[n-1].ends || n > 0 && strings.HasSuffix(strings.TrimSpace(before), ".") {
		if last := bareWord(preceding[n-1].raw); titles[last] || len(fields) > 1 && roles[last] {
			return true
		}
	}
	if len(fields) < 2 {
		return false
	}
	if strings.HasPrefix(after, ", ") { // "Rhea Dunn, head of the institute"
		for k := 0; k < len(following) && k < 4; k++ {
			if roles[following[k].low] {
				return true
			}
			if following[k].ends {
				break
			}
		}
	}
	if aged.MatchString(after) || len(following) > 1 && following[0].low == "was" && following[1].low == "born" {
		return true // "Milo Sandt, 54, was born", "Anton Reck (1901-1990)"
	}
	if n := len(preceding); n > 1 && ledBy[preceding[n-2].low] && agents[preceding[n-1].low] {
		return true
	}
	if n := len(preceding); n > 0 && len(following) > 0 && agents[preceding[n-1].low] && ledBy[following[0].low] {
		return true // "wurde von Jana Holm geleitet"
	}
	return len(following) > 0 && !strings.HasPrefix(after, ",") && personal[following[0].low]
}

var aged = regexp.MustCompile(`^(, \d\d,| \(\d{4}\s?[-–]\s?\d{4}\))`)

func bareWord(w string) string { return strings.Trim(strings.ToLower(w), ".,;:()") }

func generalWordOf(w string) bool {
	low := strings.ToLower(w)
	return words().is("general", low, stem(low))
}

var (
	addresses = []string{"氏", "さん", "教授", "博士", "先生", "女士", "会长", "社長", "首相", "大臣"}
	nobiliary = wordSet("de da di del della van von der den la le el bin ibn al")
	titles    = wordSet("dr prof professor professorin mr mrs ms miss sir dame lord lady herr frau m mme mlle monsieur madame sr sra señor señora don doña dott dottor")
	roles     = wordSet(`president minister director chairman chairwoman chair founder co-founder ceo cfo cto head chief manager researcher scientist engineer chemist physicist biologist economist doctor physician author writer
		journalist mayor senator governor judge lawyer spokesman spokeswoman spokesperson professor inventor architect analyst secretary chancellor commissioner expert
		präsident präsidentin minister ministerin direktor direktorin vorsitzender vorsitzende gründer gründerin leiter leiterin chef chefin forscher forscherin wissenschaftler wissenschaftlerin ingenieur ingenieurin
		chemiker chemikerin physiker physikerin autor autorin bürgermeister bürgermeisterin sprecher sprecherin kanzler kanzlerin geschäftsführer geschäftsführerin
		président présidente ministre directeur directrice fondateur fondatrice chercheur chercheuse scientifique ingénieur ingénieure chimiste physicien physicienne auteur autrice maire porte-parole
		presidente presidenta ministro ministra director directora fundador fundadora investigador investigadora científico científica ingeniero ingeniera químico química autor autora alcalde alcaldesa portavoz`)
	ledBy         = wordSet("led headed run chaired founded written invented directed geleitet gegründet geführt dirigé dirigée fondé fondée dirigido dirigida fundado fundada")
	agents        = wordSet("by von par por")
	personal      = wordSet("resigned retired died graduated starb emeritierte murió") // not "said": so do firms and cities
	organisations = wordSet(`institute university college school laboratory laboratories lab labs paper power energy motor motors group bank ministry office gmbh ag se inc ltd llc corp sa sl spa plc co company hospital clinic
		council union party court museum foundation trust association society federation committee commission agency river lake mount bay island islands city county street road bridge dam port harbour valley park north south east west new
		institut universität hochschule labor werke werk papier bank ministerium stiftung verband verein klinik krankenhaus see fluss straße brücke hafen
		université laboratoire banque ministère fondation association hôpital fleuve lac rue pont port instituto universidad laboratorio banco ministerio fundación asociación río lago calle puente puerto planta san santa saint`)
)
