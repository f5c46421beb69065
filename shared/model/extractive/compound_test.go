package extractive

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/text"
)

// cited is what a claim becomes: its statement and the marks that stand for it.
type cited struct {
	statement string
	markers   []int
}

func partsOf(sentences ...string) (report, []part) {
	var list []model.Numbered
	for i, s := range sentences {
		list = append(list, model.Numbered{N: i + 1, Text: s, Markers: text.Markers(s)})
	}
	r := readReport(list)
	return r, r.parts(len(list) - 1)
}

func TestASentenceThatJoinsClaimsIsDivided(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sentence string
		want     []cited
	}{
		{"Toyota plans 2027 [1], while Samsung reached 900 Wh/L [2].", []cited{{"Toyota plans 2027.", []int{1}}, {"Samsung reached 900 Wh/L.", []int{2}}}},
		{"The plant in Moss employs 320 people [1] and 40 robots are in use [2].", []cited{{"The plant in Moss employs 320 people.", []int{1}}, {"40 robots are in use.", []int{2}}}},
		{"The Nile is 6,650 km long [1]; the Amazon is 6,400 km long [2]; the Yangtze measures 6,300 km [3].",
			[]cited{{"The Nile is 6,650 km long.", []int{1}}, {"The Amazon is 6,400 km long.", []int{2}}, {"The Yangtze measures 6,300 km.", []int{3}}}},
		{"Talmo sold 900 pumps in 2025 [1], Ystad Klima sold 1,200 pumps [2], and Brandt left the market [3].",
			[]cited{{"Talmo sold 900 pumps in 2025.", []int{1}}, {"Ystad Klima sold 1,200 pumps.", []int{2}}, {"Brandt left the market.", []int{3}}}},
		{"While CATL expects small volumes in 2027 [1], BYD has announced 2030 [2].", []cited{{"CATL expects small volumes in 2027.", []int{1}}, {"BYD has announced 2030.", []int{2}}}},
		{"Exports of fish rose by 5 percent [1], although exports of meat fell by 6 percent [2].", []cited{{"Exports of fish rose by 5 percent.", []int{1}}, {"Exports of meat fell by 6 percent.", []int{2}}}},
		{"Prices hit 4.30 dollars in May [1], and roasters such as Lavazza raised prices by 15 percent [2].", []cited{{"Prices hit 4.30 dollars in May.", []int{1}}, {"Roasters such as Lavazza raised prices by 15 percent.", []int{2}}}},
		{"Unemployment fell to 4.1 percent in May [1]; however, youth unemployment remained at 11 percent [2].",
			[]cited{{"Unemployment fell to 4.1 percent in May.", []int{1}}, {"Youth unemployment remained at 11 percent.", []int{2}}}},
		{"Norway exported 90 TWh in 2024, and Sweden imported 12 TWh in 2024 [1][2].", []cited{{"Norway exported 90 TWh in 2024.", []int{1, 2}}, {"Sweden imported 12 TWh in 2024.", []int{1, 2}}}},
		{"In 2024, exports of fish rose by 4 percent [1], while imports of meat fell by 2 percent [2], and sales of milk grew by 1 percent [3].",
			[]cited{{"In 2024, exports of fish rose by 4 percent.", []int{1}}, {"In 2024, imports of meat fell by 2 percent.", []int{2}}, {"In 2024, sales of milk grew by 1 percent.", []int{3}}}},
		{"Sales rose in Spain [1] and France [2] and Italy had a record of 9,000 cars [3].", []cited{{"Sales rose in Spain and France.", []int{1, 2}}, {"Italy had a record of 9,000 cars.", []int{3}}}},
		{"Rain is expected in the north [1]; in the south, drought continues [2].", []cited{{"Rain is expected in the north.", []int{1}}, {"In the south, drought continues.", []int{2}}}},
		{"The A1 mill uses 40 kW [1], while the B2 mill, which was built in 1990, uses 90 kW [2].", []cited{{"The A1 mill uses 40 kW.", []int{1}}, {"The B2 mill, which was built in 1990, uses 90 kW.", []int{2}}}},
		{"iPhones have LFP cells [1], while mRNA vaccines must be cooled to −70 °C [2].", []cited{{"iPhones have LFP cells.", []int{1}}, {"mRNA vaccines must be cooled to −70 °C.", []int{2}}}},
		{"The bridge was built in 1931 [1] and was closed in 2019 [2].", []cited{{"The bridge was built in 1931.", []int{1}}, {"The bridge was closed in 2019.", []int{2}}}},
		{"The bridge is 93 m high [1], but was planned to be 120 m high [2].", []cited{{"The bridge is 93 m high.", []int{1}}, {"The bridge was planned to be 120 m high.", []int{2}}}},
		{"In 2024, Talmo sold 900 pumps [1], and Ystad sold 40 boilers [2] and opened a plant in Moss [3].",
			[]cited{{"In 2024, Talmo sold 900 pumps.", []int{1}}, {"In 2024, Ystad sold 40 boilers.", []int{2}}, {"In 2024, Ystad opened a plant in Moss.", []int{3}}}},
		{"The museum has 4,000 paintings [1], was opened in 1931 [2] and is visited by 900,000 people a year [3].",
			[]cited{{"The museum has 4,000 paintings.", []int{1}}, {"The museum was opened in 1931.", []int{2}}, {"The museum is visited by 900,000 people a year.", []int{3}}}},
		{"Samsung reached 900 Wh/L [2], and Toyota plans production in 2027.", []cited{{"Samsung reached 900 Wh/L.", []int{2}}, {"Toyota plans production in 2027.", nil}}},
		{"**Talmo sold 900 pumps ([1]), while Ystad sold 40** [[2]](https://b.example/y).", nil}, // 40 of what
		{"**Talmo sold 900 pumps ([1](https://a.example/x;y)), while Ystad sold 40 boilers** [[2]](https://b.example/y).",
			[]cited{{"Talmo sold 900 pumps.", []int{1}}, {"Ystad sold 40 boilers.", []int{2}}}},
		{"L'usine de Lyon emploie 320 personnes [1]; le site de Brest est fermé depuis 2021 [2].",
			[]cited{{"L'usine de Lyon emploie 320 personnes.", []int{1}}, {"Le site de Brest est fermé depuis 2021.", []int{2}}}},
		{"Das Kraftwerk in Emden ist seit 2021 stillgelegt [1]; die Brücke in Kassel hat 410 Meter Länge [2].",
			[]cited{{"Das Kraftwerk in Emden ist seit 2021 stillgelegt.", []int{1}}, {"Die Brücke in Kassel hat 410 Meter Länge.", []int{2}}}},
		{"La planta de Soria tiene 320 empleados [1]; el puerto de Vigo está cerrado desde 2021 [2].",
			[]cited{{"La planta de Soria tiene 320 empleados.", []int{1}}, {"El puerto de Vigo está cerrado desde 2021.", []int{2}}}},
	} {
		_, parts := partsOf(c.sentence)
		if c.want == nil {
			require.Len(t, parts, 1, c.sentence)
			continue
		}
		var got []cited
		for _, p := range parts {
			got = append(got, cited{p.plain, p.Markers})
		}
		require.Equal(t, c.want, got)
	}
}

func TestASentenceStaysWholeWhereAPartWouldLoseSomething(t *testing.T) {
	t.Parallel()
	for what, sentences := range map[string][]string{
		"whose the verb is": {"The bridge was built in 1931 [1] and closed in 2019 [2].", "The report says Talmo sold 900 pumps [1] and opened a plant in Moss [2].",
			"Talmo bought Ystad, which sold 900 pumps [1] and was closed in 2019 [2].", "It was built in 1931 [1] and was closed in 2019 [2].", "The bridge was built in 1931, and was closed in 2019 [2].",
			"No bridge was built in 1931 [1] and was closed in 2019 [2]."},
		"no verb": {"Toyota, Honda, and Nissan plan solid-state cars for 2028 [1].", "Toyota [1] and Samsung [2] plan solid-state cars for 2028.", "The cathode costs 40 dollars [1] and the anode 12 dollars [2].",
			"Electricity cost 31 cents per kWh in spring [3], i.e. about 2.8 times the price of gas [3].", "Prices fell to 90 dollars per kWh [1], compared with 110 dollars in Europe [2].",
			"Makers of pumps use R290 [1], and cells made in Japan by Toyota [2]."},
		"a word that points back": {"The pilot line opened in 2025 [1], but its output is 30 cells a day [2].", "Two dryers stand in the mill [1], and they use 40 kW each [2].",
			"The mill employs 320 people [1]; this makes it the largest employer in Moss [2].", "The mill runs four dryers [1], but such dryers are banned in Sweden [2].", "Rooms must be dry [1], and rooms of that kind cost 9 million euros [2]."},
		"which one": {"Talmo opened a mill in Moss [1], and the mill employs 320 people [2].", "Talmo opened a line in 2020 [1], and the second line will open in 2028 [2].",
			"Talmo sold 900 pumps in 2025 [1], and the figure rose to 1,200 pumps in 2026 [2]."},
		"whose":                          {"The pilot started in 2022 [1], and the budget is 12 million euros [2]."},
		"an exception":                   {"The law takes effect in 2025 [1], although small firms have until June 2026 [2]."},
		"a list":                         {"The variety was bred at CIRAD [1], released in 2010 [2] and is now planted on 40,000 hectares [3]."},
		"what somebody found":            {"Researchers found that exports rose by 4 percent [1] and that imports fell by 2 percent [2]."},
		"the relative clause":            {"The plant, which Toyota owns [1] and Samsung operates [2], is in Moss."},
		"the other side of a comparison": {"Sulfide cells reach 450 Wh/kg [1], but oxide cells are cheaper [2]."},
		"what is counted": {"One producer gives a 10-year guarantee [1]; its competitor Ystad Klima gives 7 [2].", "The guild expects 180,000 installations in 2026 [1]; there had been 356,000 in 2023 [2].",
			"Samsung SDI has a line in Suwon [1], and Toyota has one in Aichi [2].", "According to Talmo, the pump lasts 40 years [1], but a test by Brandt found 12 years [2]."},
		"the condition":             {"If the plant opens in 2027, Toyota will hire 900 people [1], and Honda will close a site [2]."},
		"the place":                 {"In Japan, sales rose by 4 percent [1], while exports fell by 2 percent [2]."},
		"the year":                  {"Norway exported 90 TWh in 2024, and Sweden imported 12 TWh [1].", "Norway exported 90 TWh, and Sweden imported 12 TWh in 2024 [1]."},
		"whose statement it is":     {"According to the ministry, Norway exported 90 TWh, and Sweden imported 12 TWh [1].", "The ministry says that Norway exported 90 TWh; Sweden imported 12 TWh [1]."},
		"the other half":            {"Not only did exports rise by 9 percent [1], but imports grew by 4 percent [2].", "Either Norway exports 90 TWh [1] or Sweden imports 12 TWh [2]."},
		"its label":                 {"**Talmo:** the guarantee is 10 years [1]; the price is 45 euros [2]."},
		"the time":                  {"The valve opens at 90 °C [1], while the pump is running at full speed [2]."},
		"a quotation":               {`The guild wrote: "Talmo sold 900 pumps; Ystad sold 40 boilers" [1].`, "The guild wrote in “Talmo sold 900 pumps [1]; Ystad sold 40 boilers” [2]."},
		"who speaks":                {"Nordvik Institute measured 46 dB at the fence [1], while the maker states a noise level of 38 dB [2]."},
		"a mark meant for both":     {"Talmo [1] sold 900 pumps, and Ystad sold 40 boilers."},
		"German order of words":     {"Toyota plant die Produktion für 2027 [1], während Samsung 900 Wh/L erreichte [2]."},
		"German, a word in between": {"Das Werk produziert 40 Züge [1] und die Werkstatt repariert 90 Wagen [2].", "Dem Werk fehlen 40 Wagen [1]; die Bestellungen dauern sieben Jahre [2]."},
		"French":                    {"L'usine emploie 320 personnes [1], tandis que le site de Brest est fermé [2].", "L'usine est fermée [1]; elle produit 40 tonnes de papier [2]."},
		"Chinese":                   {"丰田计划2027年量产固态电池[1]，而三星的能量密度达到900 Wh/L[2]。", "丰田公司成立于1937年[1]；拥有37万名员工[2]。"},
		"Japanese":                  {"北海道大学の調査では平均寿命は19年で[1]、東京大学の調査では21年だった[2]。"},
		"brackets left open":        {"Talmo sold 900 pumps (in Moss [1], while Ystad sold 40 boilers [2].", "a) Talmo sold 900 pumps [1]; Ystad sold 40 boilers [2]."},
	} {
		for _, s := range sentences {
			_, parts := partsOf(s)
			require.Len(t, parts, 1, "%s: %s", what, s)
			require.Equal(t, text.StripMarkers(s), parts[0].plain)
		}
	}
}

func TestWhatIsMeantForBothClausesKeepsThemTogether(t *testing.T) {
	t.Parallel()
	for _, sentence := range []string{
		"Talmo would sell 900 pumps [1], and Ystad would sell 40 boilers [2], if the tax were abolished.",
		"Talmo sold 900 pumps [1], and Ystad sold 40 boilers [2], according to a blog.",
		"Talmo sold 900 pumps [1] and Ystad sold 40 boilers [2] in 2024.",
		"Turbines cost 4 million dollars [1] and are 90 m high [2], if bought in bulk.",
		"Allegedly Talmo sold 900 pumps [1], and Ystad sold 40 boilers [2].",
		"Talmo said it had sold 900 pumps [1], and Ystad had sold 40 boilers [2].",
		"Compared with 2019, sales of pumps rose by 4 percent [1], and imports of boilers fell by 2 percent [2].",
		"Das Werk soll 2027 schließen [1]; die Brücke ist gesperrt [2], so die Behörde.",
	} {
		_, parts := partsOf(sentence)
		require.Len(t, parts, 1, sentence)
	}
}

func TestAPartGetsTheNameOrTheHeadingThatItNeeds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sentences []string
		want      []string
	}{
		{[]string{"Halden Paper employs 320 people [1]; it runs 4 lines in Moss [2]."}, []string{"Halden Paper employs 320 people.", "Halden Paper runs 4 lines in Moss."}},
		{[]string{"Halden Paper opened in 1990 [1], and its mill in Moss employs 320 people [2]."}, []string{"Halden Paper opened in 1990.", "Halden Paper's mill in Moss employs 320 people."}},
		{[]string{"Halden Paper opened a mill in 2020; the company speaks of 40 tonnes a day [1]."}, []string{"Halden Paper opened a mill in 2020.", "Halden Paper speaks of 40 tonnes a day."}},
		{[]string{"# Cycle life", "The manufacturer states 1,000 cycles; the laboratory stopped after 800 cycles [1]."},
			[]string{"Cycle life: The manufacturer states 1,000 cycles.", "Cycle life: The laboratory stopped after 800 cycles."}},
		{[]string{"The manufacturer states 1,000 cycles; the laboratory stopped after 800 cycles [1]."}, nil},
	} {
		task := model.DistillTask{Question: "?", Pages: []model.Page{{N: 1}, {N: 2}}}
		for i, s := range c.sentences {
			task.Sentences = append(task.Sentences, model.Numbered{N: i + 1, Text: s, Markers: text.Markers(s)})
		}
		var got []string
		for _, f := range distill(task).Facts {
			got = append(got, f.Statement)
			require.Equal(t, len(c.sentences), f.Sentences[len(f.Sentences)-1])
		}
		require.Equal(t, c.want, got)
	}
}

// TestClausesOfAnySubjectAreDividedAndCiteTheirOwnPages joins clauses of many subjects in every way, and puts what is no clause in their
// place.
func TestClausesOfAnySubjectAreDividedAndCiteTheirOwnPages(t *testing.T) {
	t.Parallel()
	clauses := []string{
		"Norway exported 90 TWh of power", "the Nile is 6,650 km long", "Talmo sold 900 heat pumps", "the museum in Bergen has 4,000 paintings", "trials in Lund showed 12 side effects",
		"the Brandt survey counted 140 houses", "wheat prices rose by 14 percent", "Kitsune Motors will build 300 sedans", "measles vaccines require storage at −70 °C", "42 percent of voters in Turku chose Virtanen",
	}
	fragments := []string{"of 40 tonnes a day", "the anode 12 dollars", "houses built in Moss before 1980", "which holds 30 litres", "about 2.8 times the price of gas", "closed by the council in May"}
	together := 0
	for _, a := range clauses {
		for _, join := range []string{" [1], while %s [2].", " [1], whereas %s [2].", " [1] and %s [2].", " [1], and %s [2].", " [1], but %s [2].", ",[1] but %s [2].", " [1]; %s [2].", " [1]; however, %s [2].", " [1], %s [2].", " [1]; %s.[2]", " ([1]) and %s ([2]).", ` \[1\] and %s \[2\].`, "【1】, while %s【2】."} {
			for _, b := range clauses {
				if a == b {
					continue
				}
				together++
				sentence := capital(a) + fmt.Sprintf(join, b)
				_, parts := partsOf(sentence)
				require.Len(t, parts, 2, sentence)
				require.Equal(t, []string{capital(a) + ".", capital(b) + "."}, []string{parts[0].plain, parts[1].plain})
				require.Equal(t, [][]int{{1}, {2}}, [][]int{parts[0].Markers, parts[1].Markers})
				holds(t, sentence, parts)
			}
			for _, b := range fragments {
				sentence := capital(a) + fmt.Sprintf(join, b)
				_, parts := partsOf(sentence)
				require.Len(t, parts, 1, sentence)
			}
		}
	}
	require.Equal(t, 13*90, together)
}

func TestPartsOfTheReportsHoldTogether(t *testing.T) {
	t.Parallel()
	divided := 0
	for _, task := range allReports(t) {
		r := readReport(task.Sentences)
		for i, s := range task.Sentences {
			parts := r.parts(i)
			holds(t, s.Text, parts)
			if len(parts) > 1 {
				divided++
			}
		}
	}
	require.Positive(t, divided)
}

// TestPartsOfAnySentenceHoldTogether puts the words that matter together at random.
func TestPartsOfAnySentenceHoldTogether(t *testing.T) {
	t.Parallel()
	tokens := strings.Fields(`The the a Talmo Ystad Halden Paper bridge bridges mill sells sold was is are has reached rose 40 1,200 9% €5 2027 in In of by while and but , ; [1] [2] [3] ([2]) [[1]](x) , and its
		it they which that While Although ; however, pumps cells percent ** ( ) " ` + "`" + ` : . company plant closed opened runs Die ist der le est 丰田 , whereas costs cost 3. 1) > -`)
	random := rand.New(rand.NewPCG(1, 2))
	divided := 0
	for range 5000 {
		var picked []string
		for range 4 + random.IntN(22) {
			picked = append(picked, tokens[random.IntN(len(tokens))])
		}
		sentence := strings.NewReplacer(" ,", ",", " ;", ";").Replace(strings.Join(picked, " ") + " [2].")
		r := readReport(numbered(sentence))
		for i, s := range r.sentences {
			parts := r.parts(i)
			holds(t, s.Text, parts)
			if len(parts) > 1 {
				divided++
			}
		}
		distill(plainTask(sentence))
	}
	require.Positive(t, divided)
}

var digits = regexp.MustCompile(`[0-9]+`)

// holds checks what is true of the parts of any sentence: they are literal parts of it, in order; each cites marks of the sentence, its own
// if it has any; every figure of the sentence is in one of them, and no other.
func holds(t *testing.T, sentence string, parts []part) {
	t.Helper()
	require.NotEmpty(t, parts)
	rest := sentence
	var said []string
	for _, p := range parts {
		_, after, found := strings.Cut(rest, p.Text)
		require.True(t, found, "%q is not a part of %q", p.Text, sentence)
		rest = after
		if own := text.Markers(p.Text); len(own) > 0 && len(parts) > 1 {
			require.Equal(t, own, p.Markers)
		}
		for _, m := range p.Markers {
			require.Contains(t, text.Markers(sentence), m)
		}
		if len(parts) > 1 {
			require.NotEmpty(t, p.plain)
		}
		said = append(said, digits.FindAllString(p.plain, -1)...)
	}
	figures := digits.FindAllString(text.StripMarkers(sentence), -1)
	for _, f := range figures {
		require.Contains(t, said, f, sentence)
	}
	for _, f := range said {
		require.Contains(t, figures, f, sentence)
	}
	if len(parts) == 1 {
		require.Equal(t, sentence, parts[0].Text)
	}
}

func FuzzParts(f *testing.F) {
	f.Add("Toyota plans 2027 [1], while Samsung reached 900 Wh/L [2].")
	f.Add("In 2024, exports rose by 4 percent [1]; **imports** fell [by 2 percent](https://a.example/;x) [2, 3].")
	f.Add("Das Werk ist zu [1]; die Halle hat 9 m; 丰田计划2027年量产[1]，而三星。")
	f.Add("The bridge was built in 1931 [1] and was closed in 2019 [2], but while [3]; is open [4].")
	f.Add("**;** Is it 9 m [1], and; , the plant in Moss is 9 m high [2], while , is")
	f.Add("\xff`;\" [1] and [[2]](x) while (; ), but is 3. is [1], is")
	f.Fuzz(func(t *testing.T, s string) {
		sentences := numbered(s)
		r := readReport(sentences)
		for i := range sentences {
			holds(t, sentences[i].Text, r.parts(i))
		}
		pages := []model.Page{{N: 1}, {N: 2}, {N: 3}}
		for _, fact := range distill(model.DistillTask{Question: s, Sentences: sentences, Pages: pages, MaxFacts: 9}).Facts {
			own := sentences[fact.Sentences[len(fact.Sentences)-1]-1].Markers
			if fact.Page != nil {
				require.Contains(t, own, *fact.Page)
			}
		}
	})
}
