package measure

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/text/texttest"
)

// show writes what was found in a sentence: "40 km = 40000 length".
func show(s string) []string {
	out := []string{}
	quantities, dates := Find(s)
	for _, q := range quantities {
		text := fmt.Sprintf("%s = %.6g", s[q.Start:q.End], q.Lo)
		if q.Hi != q.Lo {
			text += fmt.Sprintf("..%.6g", q.Hi)
		}
		text += " " + q.Family
		for flag, on := range map[string]bool{" about": q.Approx, " least": q.AtLeast, " most": q.AtMost} {
			if on {
				text += flag
			}
		}
		if q.Scope {
			text += " scope"
		}
		out = append(out, text)
	}
	for _, d := range dates {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s = %d-%d-%d %s", s[d.Start:d.End], d.Year, d.Month, d.Day, d.Part)))
	}
	return out
}

func TestFindReadsQuantities(t *testing.T) {
	t.Parallel()
	cases := []struct {
		sentence string
		want     []string
	}{
		{"The crater is 40 km wide.", []string{"40 km = 40000 length"}},
		{"It covers 12,500 hectares.", []string{"12,500 hectares = 1.25e+08 area"}},
		{"It covers 30 square kilometres.", []string{"30 square kilometres = 3e+07 area"}},
		{"A 500mg dose", []string{"500mg = 0.0005 mass"}},
		{"a 10-year study of 3.5 GW", []string{"10-year = 3.15576e+08 time", "3.5 GW = 3.5e+09 power"}},
		{"It reached 450 Wh/kg and 120 km/h.", []string{"450 Wh/kg = 1.62e+06 energy/mass", "120 km/h = 33.3333 length/time"}},
		{"about 1.2 million people", []string{"1.2 million = 1.2e+06 count about"}},
		{"11 and a half hours", []string{"11 and a half hours = 41400 time"}},
		{"two-thirds of the teachers", []string{"two-thirds = 0.666667 ratio"}},
		{"60 tonnes a day", []string{"60 tonnes a day = 0.694444 mass/time"}},
		{"38 hours a week", []string{"38 hours a week = 0.22619 time/time"}},
		{"at least 24 months", []string{"24 months = 6.31152e+07 time least"}},
		{"up to 900 passengers", []string{"900 = 900 count most"}},
		{"between 2 and 3 million workers", []string{"2 and 3 million = 2e+06..3e+06 count"}},
		{"from 10 to 80 percent", []string{"10 to 80 percent = 0.1..0.8 ratio"}},
		{"250–300 Wh/kg", []string{"250–300 Wh/kg = 900000..1.08e+06 energy/mass"}},
		{"between -20 and -10 °C", []string{"-20 and -10 °C = -20..-10 temperature"}},
		{"It was 68 °F.", []string{"68 °F = 20 temperature"}},
		{"It was measured at 25 °C.", []string{"25 °C = 25 temperature scope"}},
		{"patients over 65", []string{"65 = 65 count least scope"}},
		{"over 1,000 people", []string{"1,000 = 1000 count least"}},
		{"€4,200 million or $3bn", []string{"€4,200 million = 4.2e+09 money:EUR", "$3bn = 3e+09 money:USD"}},
		{"two thirds of them", []string{"two thirds = 0.666667 ratio"}},
		{"one in four households", []string{"one in four = 0.25 ratio"}},
		{"half of the schools", []string{"half = 0.5 ratio"}},
		{"twice as high", []string{"twice = 2 times"}},
		{"cost between four and eight times as much", []string{"four and eight times = 4..8 times"}},
		{"a factor of 1.5 to 2", []string{"factor of 1.5 to 2 = 1.5..2 times"}},
		{"twenty-one members", []string{"twenty-one = 21 count"}},
		{"3.5 percentage points", []string{"3.5 percentage points = 0.035 points"}},
		{"Die Quote lag bei 5,1 Prozent und 1.240 Personen.", []string{"5,1 Prozent = 0.051 ratio", "1.240 = 1240 count"}},
		{"Le pont mesure 2,4 km et coûte 3 milliards d'euros.", []string{"2,4 km = 2400 length", "3 milliards = 3e+09 count"}},
		{"该项目耗资3.5亿元，长30公里。", []string{"3.5亿元 = 3.5e+08 money:CNY", "30公里 = 30000 length"}},
		{"高さは333メートルである。", []string{"333 = 333 count"}},
		{"In phase 3 the COVID-19 vaccine of Version 4.2 ran on Falcon 9.", []string{}},
		{"a 3D model of the 21st century", []string{}},
		{"Según el ministerio, la ley afecta a 2,5 millones de personas.", []string{"2,5 millones = 2.5e+06 count"}},
		{"one of the tests", []string{}},
		{"", []string{}},
	}
	for _, c := range cases {
		require.Equal(t, c.want, show(c.sentence), c.sentence)
	}
}

func TestFindReadsDates(t *testing.T) {
	t.Parallel()
	cases := []struct {
		sentence string
		want     []string
	}{
		{"on 3 May 2024", []string{"3 May 2024 = 2024-5-3"}},
		{"on May 3, 2024", []string{"May 3, 2024 = 2024-5-3"}},
		{"on 2024-05-03", []string{"2024-05-03 = 2024-5-3"}},
		{"am 3. Mai 2024", []string{"3. Mai 2024 = 2024-5-3"}},
		{"le 3 mai 2024", []string{"3 mai 2024 = 2024-5-3"}},
		{"el 3 de mayo de 2024", []string{"3 de mayo de 2024 = 2024-5-3"}},
		{"2024年5月3日に", []string{"2024年5月3日 = 2024-5-3"}},
		{"in March", []string{"March = 0-3-0"}},
		{"They may march.", []string{}},
		{"in the third quarter of 2023", []string{"third quarter of 2023 = 2023-0-0 q3"}},
		{"in Q3 2023", []string{"Q3 2023 = 2023-0-0 q3"}},
		{"in the first half of 2020", []string{"first half of 2020 = 2020-0-0 h1"}},
		{"between 2010 and 2020", []string{"2010 = 2010-0-0", "2020 = 2020-0-0"}},
		{"in early 2024", []string{"2024 = 2024-0-0 early"}},
		{"in the 1990s", []string{"1990s = 1990-0-0 decade"}},
		{"in the season 2023/24", []string{"2023/24 = 2023-0-0"}},
		{"In summer the lake is full.", []string{"summer = 0-0-0 summer"}},
		{"a boy in summer clothes", []string{}},
		{"It enrolled 1840 adults.", []string{"1840 = 1840 count"}},
		{"Die Exporte stiegen 2022 um 3 Prozent.", []string{"3 Prozent = 0.03 ratio", "2022 = 2022-0-0"}},
	}
	for _, c := range cases {
		require.Equal(t, c.want, show(c.sentence), c.sentence)
	}
}

func TestCompareAllowsForUnitsAndRounding(t *testing.T) {
	t.Parallel()
	cases := []struct {
		a, b string
		want Relation
	}{
		{"1,000 m", "1 km", Same},
		{"2 years", "24 months", Same},
		{"52 weeks", "1 year", Same},
		{"half of them", "50 percent", Same},
		{"about 1.2 million", "1,203,000", Same},
		{"roughly 15,000", "14,870", Same},
		{"about a third of them", "33 percent", Same},
		{"two thirds of them", "67 percent", Same},
		{"two thirds of them", "66 percent", Close},
		{"two thirds of them", "70 percent", Apart},
		{"half of them", "51 percent", Apart},
		{"34 percent", "34.2 percent", Close},
		{"between 20 and 30 hours", "25 hours", Close},
		{"at least 8 hours", "10 hours", Close},
		{"at least 2 years", "at least 24 months", Same},
		{"more than 1,000", "1,000", Close},
		{"12 minutes", "18 minutes", Apart},
		{"about three times", "between four and eight times", Apart},
		{"at most 30 days", "more than 200 days", Apart},
		{"300 million dollars", "3 billion dollars", Apart},
		{"5.1 percent", "5.2 percent", Apart},
		{"40 km", "40 kg", Unlike},
		{"40 dollars", "40 euros", Unlike},
	}
	for _, c := range cases {
		qa, _ := Find(c.a)
		qb, _ := Find(c.b)
		require.Len(t, qa, 1, c.a)
		require.Len(t, qb, 1, c.b)
		require.Equal(t, c.want, Compare(qa[0], qb[0]), "%s, %s", c.a, c.b)
		require.Equal(t, c.want, Compare(qb[0], qa[0]), "%s, %s", c.b, c.a)
	}
}

func TestCompareDates(t *testing.T) {
	t.Parallel()
	cases := []struct {
		a, b Date
		want Relation
	}{
		{Date{Year: 2024, Month: 5, Day: 3}, Date{Year: 2024, Month: 5, Day: 3}, Same},
		{Date{Year: 2024}, Date{Year: 2024, Month: 5}, Close},
		{Date{Year: 2024}, Date{Year: 2025}, Apart},
		{Date{Year: 2024, Month: 5}, Date{Year: 2024, Month: 6}, Apart},
		{Date{Month: 5}, Date{Year: 2024, Month: 5}, Close},
		{Date{Year: 2024, Part: "q1"}, Date{Year: 2024, Part: "q2"}, Apart},
		{Date{Month: 5}, Date{Year: 2024}, Unlike},
		{Date{Part: "summer"}, Date{Part: "summer"}, Same},
		{Date{Year: 2026, Either: [2]int{1, 2}}, Date{Year: 2026, Either: [2]int{1, 2}}, Same},
		{Date{Year: 2026, Either: [2]int{1, 2}}, Date{Year: 2026, Either: [2]int{2, 1}}, Close},
		{Date{Year: 2026, Either: [2]int{1, 2}}, Date{Year: 2026, Either: [2]int{1, 3}}, Apart},
		{Date{Year: 2026, Either: [2]int{1, 2}}, Date{Year: 2026, Month: 2, Day: 1}, Close},
		{Date{Year: 2026, Either: [2]int{1, 2}}, Date{Year: 2026, Month: 5, Day: 1}, Apart},
		{Date{Year: 2026, Either: [2]int{1, 2}}, Date{Year: 2026}, Close},
		{Date{Year: 2026, Either: [2]int{1, 2}}, Date{Year: 2027}, Apart},
	}
	for _, c := range cases {
		require.Equal(t, c.want, CompareDates(c.a, c.b), "%v %v", c.a, c.b)
		require.Equal(t, c.want, CompareDates(c.b, c.a), "%v %v", c.b, c.a)
	}
}

func TestDatesInDigits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Date{
		"until 03.06.2025.":   {Year: 2025, Month: 6, Day: 3},
		"until 3.6.2025":      {Year: 2025, Month: 6, Day: 3},
		"until 2025.06.03":    {Year: 2025, Month: 6, Day: 3},
		"until 2025/6/3":      {Year: 2025, Month: 6, Day: 3},
		"until 13/2/2026":     {Year: 2026, Month: 2, Day: 13},
		"until 2/13/2026":     {Year: 2026, Month: 2, Day: 13},
		"until 2/2/2026":      {Year: 2026, Month: 2, Day: 2},
		"until 1/2/2026":      {Year: 2026, Either: [2]int{1, 2}},
		"until 01-02-2026":    {Year: 2026, Either: [2]int{1, 2}},
		"until 2025-06-03 at": {Year: 2025, Month: 6, Day: 3},
	} {
		_, dates := Find(text)
		require.Len(t, dates, 1, text)
		dates[0].Start, dates[0].End = 0, 0
		require.Equal(t, want, dates[0], text)
	}
	for _, text := range []string{"version 1.2.3", "192.168.0.1", "1/2", "120/80", "1/2/20"} {
		_, dates := Find(text)
		require.Empty(t, dates, text)
	}
}

func TestRangesThatFall(t *testing.T) {
	t.Parallel()
	for text, falling := range map[string]bool{
		"from 10 to 20 percent": false, "from 20 to 10 percent": true, "4–2": true, "2–4": false, "52-48 for it": true, "between 20 and 10 percent": false, "de 20 a 10 %": true,
	} {
		quantities, _ := Find(text)
		require.Len(t, quantities, 1, text)
		require.Equal(t, falling, quantities[0].Falling, text)
		require.LessOrEqual(t, quantities[0].Lo, quantities[0].Hi)
	}
	rise, _ := Find("10 to 20 percent")
	fall, _ := Find("20 to 10 percent")
	require.Equal(t, Close, Compare(rise[0], fall[0]))
}

func TestSpelled(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"half of them": true, "twelve of them": true, "it doubled": true, "zwölf davon": true, "la mitad": true, "十二人": true, "one third": true, "the third": true,
		"12 of them": false, "2.4 million people": false, "in March 2024": false, "350公斤": false, "many of them": false, "": false,
	} {
		require.Equal(t, want, Spelled(text), text)
	}
}

func TestFindTakesLinearTime(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"3 ", "3 of ", "between 3 and ", "1.", "1/", "1/2/2026 ", "-", "twenty-", "2024年", "May ", "a third ", "亿"} {
		texttest.Linear(t, piece, 60_000, func(size int) { Find(strings.Repeat(piece, size/len(piece))) })
	}
}

func FuzzFind(f *testing.F) {
	for _, s := range []string{"between -20 and -10 °C in May 2024", "€4,200 million", "1.234,56", "15 000 km²", "2024年5月3日に3.5亿元", "one in four", "Q3 2023–2024/25", "1/2/2026 or 03.06.2025 at 3:1, 4–2", "a factor of 1.5 to 2", "9'999'999,9 US$ 3bn", "\xff12%"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		quantities, dates := Find(s)
		end := 0
		for _, q := range quantities {
			require.True(t, q.Start >= end && q.End > q.Start && q.End <= len(s))
			require.True(t, q.Lo <= q.Hi && !math.IsNaN(q.Lo) && !math.IsInf(q.Hi, 0))
			require.NotEmpty(t, q.Family)
			require.Equal(t, utf8.ValidString(s), utf8.ValidString(s) && utf8.ValidString(s[q.Start:q.End]))
			require.Equal(t, Same, Compare(q, q))
			end = q.End
		}
		end = 0
		for _, d := range dates {
			require.True(t, d.Start >= end && d.End > d.Start && d.End <= len(s))
			require.True(t, d.Month >= 0 && d.Month <= 12 && d.Day >= 0 && d.Day <= 31)
			require.True(t, d.Year == 0 || d.Year >= 1400 && d.Year <= 2199)
			require.Equal(t, Same, CompareDates(d, d))
			end = d.End
		}
		for _, a := range quantities {
			for _, b := range quantities[:min(len(quantities), 5)] {
				require.Equal(t, Compare(a, b), Compare(b, a))
			}
		}
	})
}

func TestUnitsInWordsAndSigns(t *testing.T) {
	t.Parallel()
	for sign, word := range map[string]string{
		"4.5 km³": "4.5 cubic kilometres", "320 GWh": "320 gigawatt hours", "12 kWh": "12 kilowatt-hours", "3 TWh": "3 Terawattstunden", "7 ps": "7 picoseconds", "5 cm³": "5 cubic centimetres",
	} {
		a, _ := Find(sign)
		b, _ := Find(word)
		require.Len(t, a, 1, sign)
		require.Len(t, b, 1, word)
		require.Equal(t, Same, Compare(a[0], b[0]), sign)
	}
	power, _ := Find("320 gigawatts")
	energy, _ := Find("320 gigawatt hours")
	require.Equal(t, Unlike, Compare(power[0], energy[0]))
}

func TestThreeZerosAreThousands(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		"La región de Almizque tiene 270.000 hectáreas": 2.7e9, "The region has 270,000 hectares": 2.7e9, "Verkauft wurden in Deutschland 193.200 Wärmepumpen": 193_200,
		"a ratio of 0.000 to it": 0, "it rose by 3.142 metres": 3.142,
	} {
		quantities, _ := Find(text)
		require.NotEmpty(t, quantities, text)
		require.InDelta(t, want, quantities[0].Lo, 1e-9*want+1e-9, text)
	}
}

func TestAFractionThatComparesIsAMultiple(t *testing.T) {
	t.Parallel()
	for sentence, want := range map[string]float64{
		"The pump is half as fast as the old one.":          0.5,
		"The mill makes half as many tiles as before.":      0.5,
		"The island is a third as large as Norland.":        1. / 3,
		"The lake is half the size of Orlin.":               0.5,
		"Die Pumpe ist halb so schnell wie die alte.":       0.5,
		"El tren es la mitad de rápido que el autobús.":     0.5,
		"Die Pumpe ist anderthalbmal so schnell wie diese.": 1.5,
	} {
		quantities, _ := Find(sentence)
		require.Len(t, quantities, 1, sentence)
		require.Equal(t, "times", quantities[0].Family, sentence)
		require.InDelta(t, want, quantities[0].Lo, 1e-9, sentence)
	}
	for _, sentence := range []string{"Half the schools are closed.", "He paid half as a deposit.", "Half of the pumps are as fast as before."} {
		quantities, _ := Find(sentence)
		for _, q := range quantities {
			require.NotEqual(t, "times", q.Family, sentence)
		}
	}
}

func TestANumberWordWithACapitalIsAName(t *testing.T) {
	t.Parallel()
	quantities, _ := Find("Das Rathaus wurde von Otto Reiners entworfen.")
	require.Empty(t, quantities)
	quantities, _ = Find("Otto musei della città sono chiusi.")
	require.Len(t, quantities, 1)
}
