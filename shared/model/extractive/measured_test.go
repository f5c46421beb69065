package extractive

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/text"
)

// labelled is a pair of testdata/pairs.
type labelled struct {
	Relation     model.Relation // the label
	Also         model.Relation // accepted too: where the newer statement adds a detail, distinct is right as well
	Related      bool           // of distinct ones: they tell of the same thing, and one adds to the other; not labelled in the elder topics
	Kind         string         // what makes the pair hard
	Elder, Newer string
}

func topics(t *testing.T) map[string][]labelled {
	t.Helper()
	files, err := filepath.Glob("testdata/pairs/*.jsonl")
	require.NoError(t, err)
	out := map[string][]labelled{}
	for _, name := range files {
		file, err := os.Open(name)
		require.NoError(t, err)
		defer file.Close()
		topic := strings.TrimSuffix(filepath.Base(name), ".jsonl")
		for lines := bufio.NewScanner(file); lines.Scan(); {
			var p labelled
			require.NoError(t, json.Unmarshal(lines.Bytes(), &p), name)
			out[topic] = append(out[topic], p)
		}
	}
	return out
}

var relations = []model.Relation{model.Contradiction, model.Duplicate, model.Distinct}

// score counts the verdicts of one topic.
type score struct{ right, given, wanted map[model.Relation]int }

func newScore() score {
	return score{map[model.Relation]int{}, map[model.Relation]int{}, map[model.Relation]int{}}
}

func (s score) count(p labelled, got model.Relation) {
	want := p.Relation
	if got == p.Also {
		want = p.Also
	}
	s.wanted[want]++
	s.given[got]++
	if got == want {
		s.right[got]++
	}
}

func (s score) precision(r model.Relation) float64 { return ratio(s.right[r], s.given[r]) }
func (s score) recall(r model.Relation) float64    { return ratio(s.right[r], s.wanted[r]) }

func ratio(a, b int) float64 {
	if b == 0 {
		return 1
	}
	return float64(a) / float64(b)
}

func (s score) rows(topic string) string {
	var b strings.Builder
	for _, r := range relations {
		fmt.Fprintf(&b, "| %-10s | %-13s | %3d | %.2f | %.2f |\n", topic, r, s.wanted[r], s.precision(r), s.recall(r))
	}
	return b.String()
}

// floors are what every topic reaches at least: precision, recall. The figures that were reached stand in testdata/README.md.
var floors = map[model.Relation][2]float64{
	model.Contradiction: {0.95, 0.70},
	model.Duplicate:     {0.98, 0.85},
	model.Distinct:      {0.75, 0.98},
}

// freeFloors are those of the topics in which claim and measurement are put in longer sentences and other words.
var freeFloors = map[model.Relation][2]float64{
	model.Contradiction: {0.95, 0.55},
	model.Duplicate:     {0.98, 0.50},
	model.Distinct:      {0.55, 0.98},
}

var free = []string{"elections", "chips", "bridges-and-dams", "transport", "schools", "sea-and-sport", "farming-and-health", "culture-and-weather", "energy-and-law", "phones-and-ruins"}

func TestJudgeReachesItsFiguresOnEveryTopic(t *testing.T) {
	t.Parallel()
	table := "| topic      | relation      | pairs | precision | recall |\n"
	all := topics(t)
	for _, topic := range slices.Sorted(maps.Keys(all)) {
		pairs, least := all[topic], floors
		if slices.Contains(free, topic) {
			least = freeFloors
		}
		require.GreaterOrEqual(t, len(pairs), 24, topic)
		s := newScore()
		for _, p := range pairs {
			got, _ := judge(p.Elder, p.Newer)
			s.count(p, got)
		}
		table += s.rows(topic)
		for r, floor := range least {
			require.GreaterOrEqual(t, s.precision(r), floor[0], "precision of %s in %s", r, topic)
			require.GreaterOrEqual(t, s.recall(r), floor[1], "recall of %s in %s", r, topic)
		}
	}
	t.Log("\n" + table)
}

func TestNoContradictionIsEverADuplicate(t *testing.T) {
	t.Parallel()
	for _, pairs := range topics(t) {
		for _, p := range pairs {
			if p.Relation != model.Contradiction {
				continue
			}
			for _, order := range [][2]string{{p.Elder, p.Newer}, {p.Newer, p.Elder}} {
				got, why := judge(order[0], order[1])
				require.NotEqual(t, model.Duplicate, got, "%s\n%s\n%s", order[0], order[1], why)
			}
		}
	}
}

// TestAChangedStatementIsNeverADuplicate changes one figure of every statement, or denies it: whatever it then is, it is not the same.
func TestAChangedStatementIsNeverADuplicate(t *testing.T) {
	t.Parallel()
	changed := 0
	for _, pairs := range topics(t) {
		for _, p := range pairs {
			for _, s := range []string{p.Elder, p.Newer} {
				for _, other := range mutations(s) {
					changed++
					got, why := judge(s, other)
					require.NotEqual(t, model.Duplicate, got, "%s\n%s\n%s", s, other, why)
					got, why = judge(other, s)
					require.NotEqual(t, model.Duplicate, got, "%s\n%s\n%s", other, s, why)
				}
			}
		}
	}
	require.Greater(t, changed, 400)
}

// mutations are the sentence with the first digit of one number changed, and with "not" after one verb.
func mutations(s string) []string {
	var out []string
	for i := 0; i < len(s); i++ {
		if s[i] >= '1' && s[i] <= '9' && (i == 0 || !strings.ContainsRune("0123456789.,", rune(s[i-1]))) {
			out = append(out, s[:i]+string('1'+(s[i]-'1'+4)%9)+s[i+1:])
		}
	}
	for _, verb := range []string{" is ", " are ", " was ", " were ", " will ", " has been "} {
		if before, after, ok := strings.Cut(s, verb); ok && !strings.HasPrefix(after, "not ") {
			out = append(out, before+verb+"not "+after)
		}
	}
	return out
}

// TestTwoInEachOthersPlaceAreNoDuplicate: the words are the same, and who does it to whom is not.
func TestTwoInEachOthersPlaceAreNoDuplicate(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{
		{"Rask beat Orlin in the final of the 2021 cup.", "In the final of the 2021 cup Orlin beat Rask."},
		{"In the test the red pump outlasted the blue pump.", "The blue pump outlasted the red pump in the test."},
		{"Rents in Harlow are twice as high as in Denby.", "Rents in Denby are twice as high as in Harlow."},
		{"In 2021, Ardo sold its chip factory for 2 billion dollars to Quillon.", "In 2021, Quillon sold its chip factory for 2 billion dollars to Ardo."},
		{"Ardo's board approved the merger with Quillon.", "Quillon's board approved the merger with Ardo."},
		{"The board of Ardo rejected the merger with Quillon.", "The board of Quillon rejected the merger with Ardo."},
		{"The purchase of Oster by Brandt was completed in April 2024.", "The purchase of Brandt by Oster was completed in April 2024."},
		{"Brandt will not close the Oster plant in Lund.", "Oster will not close the Brandt plant in Lund."},
		{"Norland lent Sudland 4 billion crowns in 2023.", "Sudland lent Norland 4 billion crowns in 2023."},
		{"Norland liefert seit 2020 Gas nach Sudland.", "Sudland liefert seit 2020 Gas nach Norland."},
		{"Brandt kaufte Oster im Jahr 2023.", "Oster kaufte Brandt im Jahr 2023."},
		{"Im Jahr 2023 verklagte Brandt die Firma Oster.", "Im Jahr 2023 verklagte Oster die Firma Brandt."},
		{"Brandt demandó a Oster en 2023.", "Oster demandó a Brandt en 2023."},
		{"En 2023 Brandt compró Oster.", "En 2023 Oster compró Brandt."},
		{"Brandt a racheté Oster en 2023.", "Oster a racheté Brandt en 2023."},
		{"Brandt ha accusato Oster di frode nel 2023.", "Oster ha accusato Brandt di frode nel 2023."},
		{"ブラントは2023年にオスターを買収した。", "オスターは2023年にブラントを買収した。"},
		{"安达公司于2023年收购了博伦公司。", "博伦公司于2023年收购了安达公司。"},
		{"中国向俄罗斯出口天然气。", "俄罗斯向中国出口天然气。"},
		{"Die Stadt Rask verklagt das Land Norland.", "Das Land Norland verklagt die Stadt Rask."},
	} {
		for _, order := range [][2]string{c, {c[1], c[0]}} {
			got, why := judge(order[0], order[1])
			require.NotEqual(t, model.Duplicate, got, "%s\n%s\n%s", order[0], order[1], why)
		}
	}
	for _, c := range [][2]string{
		{"The average temperature in Rask in July is 19 °C.", "The average temperature in July in Rask is 19 °C."},
		{"The cable between Ilva and Nord is 580 kilometres long.", "The cable between Nord and Ilva is 580 kilometres long."},
		{"Brandt bought Oster in 2023.", "Oster was bought by Brandt in 2023."},
		{"In Rask, Orlin opened a museum in 2021.", "Orlin opened a museum in Rask in 2021."},
		{"2023年，安达公司收购了博伦公司。", "安达公司于2023年收购了博伦公司。"},
		{"The boy cut the grass by the road with a scythe in 1990.", "In 1990 the boy cut the grass by the road with a scythe."},
	} {
		got, why := judge(c[0], c[1])
		require.Equal(t, model.Duplicate, got, "%s\n%s\n%s", c[0], c[1], why)
	}
}

func TestContradictionDoesNotDependOnTheOrder(t *testing.T) {
	t.Parallel()
	for _, pairs := range topics(t) {
		for _, p := range pairs {
			one, _ := judge(p.Elder, p.Newer)
			other, _ := judge(p.Newer, p.Elder)
			require.Equal(t, one == model.Contradiction, other == model.Contradiction, "%s\n%s", p.Elder, p.Newer)
		}
	}
}

func TestTheSameIsWhatJudgeCallsADuplicate(t *testing.T) {
	t.Parallel()
	for topic, pairs := range topics(t) {
		for _, p := range pairs {
			relation, _ := judge(p.Elder, p.Newer)
			require.Equal(t, relation == model.Duplicate, same(read(p.Elder), read(p.Newer)), "%s: %q, %q", topic, p.Elder, p.Newer)
		}
	}
}

// later are the topics that were written when the floor had been set: their pairs must reach it too.
var later = []string{"elections", "chips", "bridges-and-dams", "astronomy", "health-guideline", "labour-law", "transfers-and-mergers", "housing", "ports-and-breaches", "agents-and-ranks", "makers-and-places"}

// beneath is how many pairs of a topic are not put before the judge, where any are: the long names that differ are most of a short statement.
var beneath = map[string]int{"agents-and-ranks": 2}

func TestFloorNominates(t *testing.T) {
	t.Parallel()
	var all []labelled
	for topic, pairs := range topics(t) {
		if !slices.Contains(later, topic) {
			all = append(all, pairs...)
			continue
		}
		var low []string
		for _, p := range pairs {
			if p.Relation != model.Distinct && cosine(vectorOf(p.Elder), vectorOf(p.Newer)) < Floor {
				low = append(low, p.Elder+" | "+p.Newer)
			}
		}
		require.Len(t, low, beneath[topic], "%s: %q", topic, low)
	}
	found, related, lowest := 0, 0, 1.0
	for _, p := range all {
		if p.Relation == model.Distinct {
			continue
		}
		related++
		near := cosine(vectorOf(p.Elder), vectorOf(p.Newer))
		if lowest = min(lowest, near); near >= Floor {
			found++
		}
	}
	// Pairs drawn from different labels: nearly all of them are about different things.
	elder, newer := make([][]float32, len(all)), make([][]float32, len(all))
	slices.SortFunc(all, func(a, b labelled) int { return strings.Compare(a.Elder+a.Newer, b.Elder+b.Newer) })
	for i, p := range all {
		elder[i], newer[i] = vectorOf(p.Elder), vectorOf(p.Newer)
	}
	over, crossed := 0, 0
	for i := range all {
		for j := range all {
			if all[i].Elder != all[j].Elder {
				crossed++
				if cosine(elder[i], newer[j]) >= Floor {
					over++
				}
			}
		}
	}
	t.Logf("nominated: %d of %d pairs labelled contradiction or duplicate (the lowest %.2f), %d of %d crossed pairs (%.1f %%)", found, related, lowest, over, crossed, 100*ratio(over, crossed))
	require.Equal(t, related, found, "every pair that has a relation is put before the judge")
	require.Less(t, ratio(over, crossed), 0.01)
	require.Contains(t, floorReason, fmt.Sprintf("all %d of", found), "the stated figures are those measured")
	require.Contains(t, floorReason, fmt.Sprintf("the lowest %.2f", lowest))
}

// TestRecordedReports distils the two recorded reports and judges the pairs that the recordings name.
func TestRecordedReports(t *testing.T) {
	t.Parallel()
	fast, balanced := recorded(t, "fast"), recorded(t, "balanced")
	data, err := os.ReadFile("../../../fixtures/tabstack-relations.json")
	require.NoError(t, err)
	var named []struct{ Relation, Fast, Balanced string }
	require.NoError(t, json.Unmarshal(data, &named))
	s := newScore()
	distilled := 0
	for _, n := range named {
		a, okA := fast.fact(n.Fast)
		b, okB := balanced.fact(n.Balanced)
		if !okA || !okB {
			t.Logf("not distilled: %s: %q and %q", n.Relation, n.Fast, n.Balanced)
			continue
		}
		distilled++
		p := labelled{Relation: model.Contradiction}
		if n.Relation == "paraphrases" {
			p = labelled{Relation: model.Duplicate, Also: model.Distinct}
		}
		for _, order := range [][2]string{{a, b}, {b, a}} {
			got, why := judge(order[0], order[1])
			s.count(p, got)
			t.Logf("%s: %s (%s), cosine %.2f", n.Relation, got, why, cosine(vectorOf(a), vectorOf(b)))
			if n.Relation == "contradicts" {
				require.NotEqual(t, model.Duplicate, got)
			}
		}
	}
	t.Log("\n" + s.rows("recorded"))
	require.GreaterOrEqual(t, distilled, 7)
	require.GreaterOrEqual(t, s.precision(model.Contradiction), 1.0)
	require.GreaterOrEqual(t, s.recall(model.Contradiction), 1.0)

	facts := append(slices.Clone(fast.facts), balanced.facts...)
	contradictions := 0
	for i := range facts {
		for j := i + 1; j < len(facts); j++ {
			if got, _ := judge(facts[i].Statement, facts[j].Statement); got == model.Contradiction {
				contradictions++
				require.GreaterOrEqual(t, cosine(vectorOf(facts[i].Statement), vectorOf(facts[j].Statement)), Floor)
			}
		}
	}
	require.Equal(t, 4, contradictions, "those that the recordings name, and no other among all pairs of facts")
}

type recording struct {
	sentences []model.Numbered
	facts     []model.DistillFact
}

// fact returns the statement of the fact that comes from the sentence that holds the excerpt.
func (r recording) fact(excerpt string) (string, bool) {
	for _, f := range r.facts {
		last := f.Sentences[len(f.Sentences)-1]
		if excerpt != "" && strings.Contains(r.sentences[last-1].Text, excerpt) {
			return f.Statement, true
		}
	}
	return "", false
}

func recorded(t *testing.T, mode string) recording {
	t.Helper()
	task := reportTask(t, mode)
	return recording{sentences: task.Sentences, facts: distill(task).Facts}
}

// reportTask makes the task of a recorded stream's report, in one chunk.
func reportTask(t testing.TB, mode string) model.DistillTask {
	t.Helper()
	data, err := os.ReadFile("../../../fixtures/tabstack-" + mode + ".sse")
	require.NoError(t, err)
	var complete struct {
		Report   string
		Metadata struct {
			Prompt     string
			CitedPages []struct {
				Title, Summary string
				Claims         []string
			}
		}
	}
	for _, block := range strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n\n") {
		if !strings.Contains(block, "event: complete") {
			continue
		}
		var payload string
		for line := range strings.SplitSeq(block, "\n") {
			if value, ok := strings.CutPrefix(line, "data:"); ok {
				payload += strings.TrimPrefix(value, " ") + "\n"
			}
		}
		require.NoError(t, json.Unmarshal([]byte(payload), &complete))
	}
	require.NotEmpty(t, complete.Report)
	task := model.DistillTask{Question: complete.Metadata.Prompt, MaxFacts: 20}
	task.Sentences = numbered(complete.Report)
	for i, p := range complete.Metadata.CitedPages {
		task.Pages = append(task.Pages, model.Page{N: i + 1, Title: p.Title, Summary: p.Summary, Claims: p.Claims})
	}
	return task
}

func allReports(t *testing.T) map[string]model.DistillTask {
	t.Helper()
	tasks := map[string]model.DistillTask{"fast": reportTask(t, "fast"), "balanced": reportTask(t, "balanced"), "brave": plainTask(braveReport(t))}
	for _, name := range []string{"heat", "bahn", "agua", "kaigo"} {
		data, err := os.ReadFile("testdata/reports/" + name + ".md")
		require.NoError(t, err)
		tasks[name] = plainTask(string(data))
	}
	return tasks
}

// TestCitedSentencesBecomeFacts counts which of the cited sentences of a report become facts: of the recorded ones, and of four in the
// style of real reports, in four languages, on other subjects.
func TestCitedSentencesBecomeFacts(t *testing.T) {
	t.Parallel()
	tasks := allReports(t)
	cited, kept := 0, 0
	for _, name := range slices.Sorted(maps.Keys(tasks)) {
		task := tasks[name]
		markers := map[int][]int{}
		n := 0
		for _, s := range task.Sentences {
			markers[s.N] = s.Markers
			if len(s.Markers) > 0 {
				n++
			}
		}
		task.MaxFacts = len(task.Sentences)
		facts, drops := task.Check(distill(task))
		require.Empty(t, drops, name)
		stated := map[int]bool{}
		for _, f := range facts {
			stated[f.Sentences[len(f.Sentences)-1]] = true
			own := markers[f.Sentences[len(f.Sentences)-1]]
			require.NotEmpty(t, own, "%s: %s", name, f.Statement)
			if f.Page != 0 {
				require.Contains(t, own, f.Page, "%s: the page is one that the sentence's own mark names", name)
			}
			if len(own) == 1 {
				require.Equal(t, own[0], f.Page)
			}
		}
		if name != "fast" && name != "balanced" && name != "brave" { // written without a contradiction
			for i := range facts {
				for j := range i {
					relation, why := judge(facts[j].Statement, facts[i].Statement)
					require.Equal(t, model.Distinct, relation, "%s\n%s\n%s", facts[j].Statement, facts[i].Statement, why)
				}
			}
		}
		t.Logf("%s: %d of %d cited sentences become %d facts", name, len(stated), n, len(facts))
		require.GreaterOrEqual(t, ratio(len(stated), n), 0.9, name)
		cited, kept = cited+n, kept+len(stated)
	}
	t.Logf("together: %d of %d", kept, cited)
	require.GreaterOrEqual(t, ratio(kept, cited), 0.97)
}

// plainTask makes a task of a report whose pages are known by their numbers only.
func plainTask(report string) model.DistillTask {
	task := model.DistillTask{Question: "What is known?", Sentences: numbered(report)}
	for n := 1; n <= 9; n++ {
		task.Pages = append(task.Pages, model.Page{N: n, Title: fmt.Sprintf("Page %d", n)})
	}
	return task
}

var citation = regexp.MustCompile(`<citation>.*?"number":(\d+).*?</citation>`)

// braveReport is the text of the recorded answer, its citations as marks.
func braveReport(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../../../fixtures/brave-citations.sse")
	require.NoError(t, err)
	var b strings.Builder
	for line := range strings.SplitSeq(string(data), "\n") {
		payload, ok := strings.CutPrefix(strings.TrimSpace(line), "data: {")
		if !ok {
			continue
		}
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		require.NoError(t, json.Unmarshal([]byte("{"+payload), &chunk))
		for _, c := range chunk.Choices {
			b.WriteString(c.Delta.Content)
		}
	}
	report, _, _ := strings.Cut(citation.ReplaceAllString(b.String(), "[$1]"), "<usage>")
	return report
}

// numbered are the sentences of a report as a step is given them: headings and heads of tables with a mark before.
func numbered(report string) []model.Numbered {
	var out []model.Numbered
	for i, s := range text.Sentences(report) {
		if s.Kind == text.Heading || s.Kind == text.TableHead {
			s.Text = "# " + s.Text
		}
		out = append(out, model.Numbered{N: i + 1, Text: s.Text, Markers: s.Markers})
	}
	return out
}
