package distil

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/extractive"
)

func TestHeadingsAndItemsAreShownWithTheirLevel(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		report string
		want   []string
	}{
		"headings":                       {"# A\n\n## B\n\n### C #\n\nText.", []string{"# A", "## B", "### C", "Text."}},
		"underlined":                     {"Above\n=====\n\nBelow\r\n-----\r\n\nText.", []string{"# Above", "## Below", "Text."}},
		"bold, below its heading":        {"## A\n\n**B**\n\nText.\n\n## C\n\n**Dry cells.** More text.", []string{"## A", "### **B**", "Text.", "## C", "#### **Dry cells.**", "More text."}},
		"in a quote":                     {"> ## A\n> - b\n>   - c", []string{"## A", "- b", "- - c"}},
		"two spaces, four, a tab":        {"- a\n  - b\n- c\n    - d\n- e\n\t- f", []string{"- a", "- - b", "- c", "- - d", "- e", "- - f"}},
		"back by two":                    {"- a\n  - b\n    - c\n- d", []string{"- a", "- - b", "- - - c", "- d"}},
		"one space is no step":           {"- a\n - b", []string{"- a", "- b"}},
		"numbers":                        {"1. a\n   - b\n2. c\n   1) d", []string{"- a", "- - b", "- c", "- - d"}},
		"bullets beside a number":        {"1. a:\n- b\n- c\n2. d [1]:\n* e", []string{"- a:", "- - b", "- - c", "- d [1]:", "- - e"}},
		"bullets after numbers":          {"1. a\n2. b\n- c", []string{"- a", "- b", "- c"}},
		"on one line":                    {"- - a\n- b", []string{"- - a", "- b"}},
		"several sentences of an item":   {"- Aa aa. Bb bb.\n  Cc cc.\n  - d", []string{"- Aa aa.", "Bb bb.", "Cc cc.", "- - d"}},
		"a list after another":           {"- a\n  - b\n\nText.\n\n  - c", []string{"- a", "- - b", "Text.", "- c"}},
		"a paragraph of an item between": {"- a\n\n  Text.\n\n  - b", []string{"- a", "Text.", "- - b"}},
		"check boxes":                    {"- [x] a\n  - [ ] b", []string{"- a", "- - b"}},
		"right to left":                  {"## الأسعار\n\n- خلايا الصوديوم:\n  - تكلف 40 يورو", []string{"## الأسعار", "- خلايا الصوديوم:", "- - تكلف 40 يورو"}},
		"Japanese":                       {"## 価格\n\n- ナトリウム電池：\n  - 価格は40ユーロ。寿命は9年。", []string{"## 価格", "- ナトリウム電池：", "- - 価格は40ユーロ。", "寿命は9年。"}},
	} {
		var got []string
		for _, s := range read(c.report, nil).chunks[0] {
			got = append(got, s.Text)
		}
		require.Equal(t, c.want, got, name)
	}
}

func TestALaterChunkBeginsWithWhatItStandsUnder(t *testing.T) {
	t.Parallel()
	filler := strings.Repeat("The mill was measured again and again. ", 400)
	m := read("# Mills\n\n## Cost\n\n### Europe\n\n"+filler+"\n\n### China\n\nIt is old.\n\n- Dryers:\n  - cost 40 euros [1]\n", pages)
	require.Len(t, m.chunks, 2)
	var over []string
	for _, s := range m.chunks[1][:4] {
		over = append(over, s.Text)
	}
	require.Equal(t, []string{"# Mills", "## Cost", "### Europe", "The mill was measured again and again."}, over)
	require.Equal(t, []int{1, 2, 3}, []int{m.chunks[1][0].N, m.chunks[1][1].N, m.chunks[1][2].N}, "the numbers that they have")

	list := "# Mills\n\n- Dryers:\n" + strings.Repeat("  - were measured again and again in the year before the last one.\n", 200) + "  - cost 40 euros [1]\n"
	facts := factsOf(t, list)
	require.Len(t, facts, 1)
	require.Equal(t, "Dryers cost 40 euros", facts[0].Statement)
}

// factsOf distils a report with the rules, and holds each fact against what is true of all: its excerpt is literal and cites its source.
func factsOf(t *testing.T, report string) []event.Fact {
	t.Helper()
	m := read(report, pages)
	h := newHarvest("t", m)
	for _, chunk := range m.chunks {
		task := model.DistillTask{Question: "What is known?", Sentences: chunk, Pages: m.pages, MaxFacts: 40}
		got, err := model.Distill(t.Context(), model.Call{Model: extractive.New(), Thread: "t"}, task)
		require.NoError(t, err)
		require.Empty(t, got.Drops)
		h.add(got)
	}
	require.Empty(t, h.dropped)
	for _, f := range h.facts {
		require.Equal(t, report[f.Excerpt.Start:f.Excerpt.End], f.Excerpt.Text)
		if f.Source != nil {
			cited := read(f.Excerpt.Text, pages)
			found := false
			for _, s := range cited.sentences {
				for _, n := range s.Markers {
					found = found || m.sources[n] == f.Source || cited.sources[n] != nil && cited.sources[n].ID == f.Source.ID
				}
			}
			require.True(t, found, "%q does not cite %s", f.Excerpt.Text, f.Source.ID)
		}
	}
	return h.facts
}

func TestAnItemOfAListKeepsItsSubject(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		report string
		want   []string // in the order of the report
	}{
		"French": {"- Les batteries au sodium :\n  - coûtent 30 % de moins [1]\n  - durent 9 ans [3]\n- Les batteries au lithium :\n  - Pèsent 40 kg par pack [3]\n",
			[]string{"Les batteries au sodium coûtent 30 % de moins", "Les batteries au sodium durent 9 ans", "Les batteries au lithium pèsent 40 kg par pack"}},
		"French, bold, by a noun": {"* **Les batteries au sodium** :\n    * prix : 40 euros par kWh [1]\n    * une densité de 160 Wh/kg en 2024 [3]\n",
			[]string{"Les batteries au sodium : prix : 40 euros par kWh", "Les batteries au sodium : une densité de 160 Wh/kg en 2024"}},
		"Spanish": {"- La planta de Moss:\n  - produce 900 bombas al año [1].\n  - Emplea a 320 personas desde 2019 [3].\n",
			[]string{"La planta de Moss produce 900 bombas al año.", "La planta de Moss emplea a 320 personas desde 2019."}},
		"Spanish, with a subject of its own": {"- La planta de Moss:\n  - El alcalde inauguró 40 secadoras en 2019 [1].\n",
			[]string{"La planta de Moss: El alcalde inauguró 40 secadoras en 2019."}},
		"German": {"1. Natrium-Zellen:\n   - kosten 30 % weniger als Lithium-Zellen [1]\n   - Wurden 2021 in Halden vorgestellt [3]\n   - Preis: 40 Euro [3]\n",
			[]string{"Natrium-Zellen kosten 30 % weniger als Lithium-Zellen", "Natrium-Zellen wurden 2021 in Halden vorgestellt", "Natrium-Zellen: Preis: 40 Euro"}},
		"German, under a number without indent": {"1. Die Natrium-Zellen aus Halden:\n- sparen 40 % der Kosten [1]\n- halten 9 Jahre lang [3]\n",
			[]string{"Die Natrium-Zellen aus Halden sparen 40 % der Kosten", "Die Natrium-Zellen aus Halden halten 9 Jahre lang"}},
		"English": {"- Sodium cells:\n  - Cost 30 % less than lithium cells [1].\n  - reduce emissions by 12 % [3]\n  - were first sold in Halden in 2021 [3]\n",
			[]string{"Sodium cells cost 30 % less than lithium cells.", "Sodium cells reduce emissions by 12 %", "Sodium cells were first sold in Halden in 2021"}},
		"three deep": {"- Sodium cells:\n  - Europe:\n    - cost 90 euros per kWh [1]\n  - China:\n    - 60 euros per kWh in 2024 [3]\n",
			[]string{"Sodium cells: Europe cost 90 euros per kWh", "Sodium cells: China: 60 euros per kWh in 2024"}},
		"a label without a colon": {"- Sodium cells\n  - cost 40 euros per kWh [1]\n", []string{"Sodium cells cost 40 euros per kWh"}},
		"what goes on in the items": {"The Halden mill will:\n\n- employ 320 people by 2027 [1]\n- burn 9 tonnes of bark a day [3]\n",
			[]string{"The Halden mill will employ 320 people by 2027", "The Halden mill will burn 9 tonnes of bark a day"}},
		"a label that names nothing, under a heading": {"# Mills\n\n## Natrium-Zellen\n\nVorteile:\n\n- kosten 30 % weniger als Blei [1]\n",
			[]string{"Mills: Natrium-Zellen: Vorteile: kosten 30 % weniger als Blei"}},
		"nothing to name it":         {"Vorteile:\n\n- kosten 30 % weniger als Blei [1]\n\n- Coûtent 30 % de moins en 2024 [1].\n", nil},
		"labels that are no subject": {"Compared with lithium cells:\n\n- cost 30 % less in 2024 [1]\n\nExcept Norvex:\n\n- sold 300 pumps in 2020 [3]\n\nHistory of Talmo:\n\n- was founded in 1984 [3]\n", nil},
		"a label that denies what stands below it": {"The following claims are false:\n\n- Talmo sold 900 pumps in 2020 [1].\n",
			[]string{"The following claims are false: Talmo sold 900 pumps in 2020."}},
		"items that stand": {"Several makers have announced dates:\n\n- Talmo sells 900 pumps a year [1].\n- Halden Paper opens its mill in 2027 [3].\n",
			[]string{"Talmo sells 900 pumps a year.", "Halden Paper opens its mill in 2027."}},
		"an item within one that is a sentence": {"- The Moss plant opened in 2019 [1].\n  - It makes 900 pumps a year [3].\n  - They cost 40 euros each [3].\n  - It burns 9 tonnes of bark a day [3].\n",
			[]string{"The Moss plant opened in 2019.", "The Moss plant opened in 2019. It makes 900 pumps a year.", "The Moss plant opened in 2019. It makes 900 pumps a year. They cost 40 euros each.",
				"The Moss plant opened in 2019. They cost 40 euros each. It burns 9 tonnes of bark a day."}},
		"an item after one that stands": {"- Talmo owns the Moss plant [1].\n  - Ardo makes 900 pumps a year [3].\n  - They cost 40 euros each [3].\n",
			[]string{"Talmo owns the Moss plant.", "Ardo makes 900 pumps a year.", "Ardo makes 900 pumps a year. They cost 40 euros each."}},
		"Spanish running text": {"La planta de Moss abrió en 2019. Produce 900 bombas al año [1]. Llegaron 900 personas a la isla en 2020 [3]. Aumentó la producción un 12 % en 2024 [3].",
			[]string{"La planta de Moss abrió en 2019. Produce 900 bombas al año.", "Llegaron 900 personas a la isla en 2020.", "Aumentó la producción un 12 % en 2024."}},
		"Arabic":   {"- خلايا الصوديوم:\n  - تكلف 40 يورو لكل كيلوواط ساعة في عام 2024 [1]\n", []string{"خلايا الصوديوم: تكلف 40 يورو لكل كيلوواط ساعة في عام 2024"}},
		"Japanese": {"- ナトリウム電池：\n  - 価格は1kWhあたり40ユーロである[1]。\n  - 寿命は9年と測定された[3]。\n", []string{"ナトリウム電池： 価格は1kWhあたり40ユーロである。", "ナトリウム電池： 寿命は9年と測定された。"}},
	} {
		var got []string
		for _, f := range factsOf(t, c.report) {
			got = append(got, f.Statement)
		}
		require.ElementsMatch(t, c.want, got, name)
	}
}

func TestAHeadingIsSaidWhereAStatementNeedsIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		report string
		want   []string
	}{
		"the path": {"# Cells\n\n## Cost\n\n### Europe\n\n90 euros per kWh in 2024 [1].\n\n### China\n\n60 euros per kWh in 2024 [3].\n\n## Safety\n\n9 fires in 2024 [3].\n",
			[]string{"Cost: Europe: 90 euros per kWh in 2024.", "Cost: China: 60 euros per kWh in 2024.", "Safety: 9 fires in 2024."}},
		"one figure of one thing under two": {"# Cells\n\n## Cost\n\n### Europe\n\nSodium cells cost 90 euros per kWh [1].\n\n### China\n\nSodium cells cost 60 euros per kWh [3].\n",
			[]string{"Europe: Sodium cells cost 90 euros per kWh.", "China: Sodium cells cost 60 euros per kWh."}},
		"one heading within two": {"# Cells\n\n## Europe\n\n### Cost\n\nSodium cells cost 90 euros per kWh [1].\n\n## China\n\n### Cost\n\nSodium cells cost 60 euros per kWh [3].\n",
			[]string{"Europe: Sodium cells cost 90 euros per kWh.", "China: Sodium cells cost 60 euros per kWh."}},
		"sections without a title": {"## Before the merger\n\nTalmo sold 900 pumps a year [1].\n\n## After the merger\n\nTalmo sold 400 pumps a year [3].\n",
			[]string{"Before the merger: Talmo sold 900 pumps a year.", "After the merger: Talmo sold 400 pumps a year."}},
		"a heading that is quoted": {"# Cells\n\n## Lithium\n\n> ## Sodium\n\nThe price fell by 30 percent in 2024 [1].\n",
			[]string{"Lithium: The price fell by 30 percent in 2024."}},
		"a number sign that begins a sentence": {"# Makers\n\n## Pumps\n\n#1 in Europe is Ardo with 900 pumps a year [1].\n\nThe price fell by 30 percent in 2024 [3].\n",
			[]string{"#1 in Europe is Ardo with 900 pumps a year.", "Pumps: The price fell by 30 percent in 2024."}},
		"the price of what": {"# Zellen\n\n## Natrium-Zellen\n\nDer Preis sank 2024 um 30 Prozent [1].\n\n## Blei\n\nLe prix a baissé de 30 % en 2024 [3].\n",
			[]string{"Natrium-Zellen: Der Preis sank 2024 um 30 Prozent.", "Blei: Le prix a baissé de 30 % en 2024."}},
		"what names it itself": {"# Cells\n\n## Cost\n\n### Europe\n\nThe price in Europe fell by 30 percent in 2024 [1].\n\nTalmo sold 900 pumps [3].\n",
			[]string{"The price in Europe fell by 30 percent in 2024.", "Talmo sold 900 pumps."}},
		"a heading that names nothing": {"# Cells of Halden\n\n## Overview\n\nPrice: 45 euros [1]\n\n## Sodium\n\n### Summary\n\nPrice: 40 euros [3]\n",
			[]string{"Cells of Halden: Price: 45 euros", "Sodium: Price: 40 euros"}},
		"Chinese": {"# 电池\n\n## 成本\n\n### 欧洲\n\n钠电池每千瓦时的价格为90欧元[1]。\n\n### 中国\n\n钠电池每千瓦时的价格为60欧元[3]。\n",
			[]string{"成本: 欧洲: 钠电池每千瓦时的价格为90欧元。", "成本: 中国: 钠电池每千瓦时的价格为60欧元。"}},
	} {
		var got []string
		for _, f := range factsOf(t, c.report) {
			got = append(got, f.Statement)
		}
		require.ElementsMatch(t, c.want, got, name)
	}
}
