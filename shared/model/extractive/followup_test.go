package extractive

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/model"
)

func asked(task model.QuestionsTask) []string {
	var out []string
	for _, q := range plan(task).Questions {
		out = append(out, q.Text)
	}
	return out
}

// known is a fact of two pages that were found in May 2026, so that nothing but its statement raises a question.
func known(statement string, tags ...string) model.KnownFact {
	return model.KnownFact{Statement: statement, Tags: tags, Retrieved: "2026-05-04", Pages: 2}
}

func TestAFollowUpNamesSomethingOfTheFacts(t *testing.T) {
	t.Parallel()
	sole, old, disputed := known("Sodium cells cost 90 euros per kWh."), known("Sodium cells cost 90 euros per kWh."), known("Sodium cells cost 90 euros per kWh.")
	sole.Pages, disputed.Pages, disputed.Disputed, old.Published = 1, 1, true, "2021-02-03"
	const cells = "What do sodium cells cost?"
	for name, c := range map[string]struct {
		root  string
		facts []model.KnownFact
		want  []string
	}{
		"nothing is open":          {cells, []model.KnownFact{known("Sodium cells cost 90 euros per kWh.")}, nil},
		"no facts, nothing to ask": {cells, nil, nil},
		"one page":                 {cells, []model.KnownFact{sole}, []string{"Which other sources confirm or deny this: “Sodium cells cost 90 euros per kWh”?"}},
		"one page, of something else": {cells, []model.KnownFact{known("Sodium cells cost 90 euros per kWh."), func() model.KnownFact {
			f := known("Owls nest in 40 mills.")
			f.Pages = 1
			return f
		}()}, nil},
		"an old page":       {cells, []model.KnownFact{old}, []string{"Does this still hold, which was published on 2021-02-03: “Sodium cells cost 90 euros per kWh”?"}},
		"already a dispute": {cells, []model.KnownFact{disputed}, nil},
		"a date that has passed": {"Who produces sodium cells?", []model.KnownFact{known("Talmo plans to produce sodium cells in 2025."), known("Ardo plans to produce sodium cells in 2031.")},
			[]string{"Has this come about since: “Talmo plans to produce sodium cells in 2025”?"}},
		"an aspect of one that is told of another": {"Which companies make cells, and what do their cells cost?",
			[]model.KnownFact{known("In Moss, Ardo Power makes cells that cost 90 euros."), known("In Halden, Talmo Power makes cells.")},
			[]string{"On the question “Which companies make cells, and what do their cells cost”: what is known about Talmo Power: cost?"}},
		"an aspect that no fact tells of": {"What do the mill and its harbour cost?", []model.KnownFact{known("The mill took 40 million euros to build.")},
			[]string{"On the question “What do the mill and its harbour cost”: what is known about harbour?"}},
		"told under a heading": {"What do the mill and its harbour cost?", []model.KnownFact{known("The mill took 40 million euros to build."), known("The quay took 12 million euros to build.", "harbour")}, nil},
		"German": {"Was kosten Wärmepumpen und ihre Erdsonden?", []model.KnownFact{known("Wärmepumpen kosten 40 Euro.")},
			[]string{"Zur Frage „Was kosten Wärmepumpen und ihre Erdsonden“: Was ist über Erdsonden bekannt?"}},
		"Spanish": {"¿Cómo afecta la sequía a los olivares?", []model.KnownFact{known("Los olivares perdieron el 40 %.")},
			[]string{"Sobre la pregunta «¿Cómo afecta la sequía a los olivares»: ¿qué se sabe de este punto: sequía?"}},
		"French": {"Quel est le prix des batteries au sodium ?", []model.KnownFact{known("Talmo prévoit de vendre des batteries au sodium en 2024.")},
			[]string{"Sur la question « Quel est le prix des batteries au sodium » : que sait-on de ce point : prix ?", "Cela s'est-il réalisé depuis : « Talmo prévoit de vendre des batteries au sodium en 2024 » ?"}},
		"Arabic":   {"ما هي تكلفة الخلايا؟", []model.KnownFact{known("تبلغ تكلفة الخلايا 40 يورو.")}, nil},
		"Japanese": {"ナトリウム電池の価格はいくらですか。", []model.KnownFact{known("ナトリウム電池の価格は40ユーロである。")}, nil},
	} {
		require.Equal(t, c.want, asked(model.QuestionsTask{Root: c.root, Known: c.facts}), name)
	}
}

func TestATopicThatTheQuestionAsksAboutAsAWholeIsNotAskedFor(t *testing.T) {
	t.Parallel()
	for topic, want := range map[string]bool{
		"cells": false, "sodium cells": false, "cell": false, "cost": false, "durability": false, "overview": false, "": false,
		"fire tests": true, "MEMO-2": true, "solid-state cars": true, "固体电池": true,
	} {
		require.Equal(t, want, specific(topic, "How far are sodium cells?"), topic)
	}
}

func TestWhoIsAPerson(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, statement string }{
		{"Rhea Dunn", "The trial was led by Rhea Dunn in 2019."},
		{"rhea dunn", "Rhea Dunn retired when the trial had taken 9 years."},
		{"Rhea Dunn", "In 2019 chemist Rhea Dunn measured 40 cells."},
		{"Rhea Dunn", "Rhea Dunn, head of the Nordvik Institute, measured 40 cells."},
		{"Dunn", "According to Dr. Dunn, the trial took 9 years."},
		{"Dr. Rhea Dunn", "The trial of Dr. Rhea Dunn took 9 years."},
		{"Jana Holm", "Der Feldtest wurde von der Forscherin Jana Holm geleitet."},
		{"Jana Holm", "Laut Frau Jana Holm waren es 77."},
		{"Anne de Vries", "L'essai a été dirigé par Anne de Vries en 2019."},
		{"Marta Ruiz", "Según la directora Marta Ruiz, fueron 40."},
		{"田中", "田中教授は40個の電池を測定した。"},
		{"王小明", "王小明博士于2019年测量了40个电池。"},
	} {
		require.True(t, NamesPerson(c.name, c.statement), "%s: %s", c.name, c.statement)
	}
	for _, c := range []struct{ name, statement string }{
		{"Halden Paper", "Halden Paper says it sold 900 pumps."},
		{"Nordvik Institute", "The trial was led by Nordvik Institute in 2019."},
		{"Talmo", "Talmo says it sold 900 pumps."},
		{"Hong Kong", "Hong Kong said it would close 9 mills."},
		{"Goldman Sachs", "Goldman Sachs says it sold 900 pumps."},
		{"Le Monde", "Le Monde explique que 9 usines ont fermé."},
		{"Deutsche Bahn", "Deutsche Bahn sagte 9 Züge ab."},
		{"North Sea", "In the North Sea, 40 mills stand."},
		{"MEMO-2", "The trial MEMO-2 said nothing of it."},
		{"Rhea Dunn", "Nothing of that name stands here."},
		{"Halden Papier", "Laut Halden Papier waren es 77."},
		{"São Paulo", "São Paulo, the city of mills, has 40."},
		{"固体电池", "固体电池于2019年上市。"},
		{"", "Nobody."},
	} {
		require.False(t, NamesPerson(c.name, c.statement), "%s: %s", c.name, c.statement)
	}
}

func TestNoTopicIsAPerson(t *testing.T) {
	t.Parallel()
	task := model.CoverageTask{Question: "What is known about the trial?", Facts: []model.CoverageFact{
		{N: 1, Statement: "The trial of heat pumps was led by Rhea Dunn.", Tags: []string{"rhea dunn", "trial"}},
		{N: 2, Statement: "Rhea Dunn says that 40 mills were closed.", Tags: []string{"rhea dunn", "mills"}},
		{N: 3, Statement: "Der Feldtest wurde von Jana Holm geleitet.", Tags: []string{"jana holm"}},
	}}
	for _, a := range cover(task).Assignments {
		require.NotNil(t, a.NewTopic)
		require.NotRegexp(t, "(?i)dunn|rhea|holm|jana", *a.NewTopic)
	}
}

func TestAGapIsNotWhatFactsTellUnderAHeading(t *testing.T) {
	t.Parallel()
	task := model.BriefTask{Question: "What do the mill and its harbour cost?", Facts: []model.BriefFact{
		{N: 1, Statement: "The mill took 40 million euros to build."}, {N: 2, Statement: "The quay took 12 million euros to build.", Tags: []string{"harbour"}},
	}}
	require.Empty(t, brief(task).Gaps)
	task.Facts[1].Tags = nil
	require.Equal(t, "No fact so far speaks of: harbour.", brief(task).Gaps[0].Text)

	long := model.DistillTask{Question: "What do the mill and its harbour cost?", MaxFacts: 9, Pages: []model.Page{{N: 1}}, Sentences: []model.Numbered{
		{N: 1, Text: "# Mills"}, {N: 2, Text: "## What the new harbour and its four quays took"}, {N: 3, Text: "### Stone"}, {N: 4, Text: "The quay took 12 million euros to build.", Markers: []int{1}},
	}}
	require.Subset(t, distill(long).Facts[0].Tags, []string{"stone", "harbour"}, "the headings around it, of a long one what the question asks for")
}

func TestFindingsThatTellOfTheSameStandTogether(t *testing.T) {
	t.Parallel()
	settled := func(statements ...string) (out []model.BriefFact) {
		for i, s := range statements {
			out = append(out, model.BriefFact{N: i + 1, Statement: s})
		}
		return out
	}
	long := func(s string) string {
		for len(s) < 350 {
			s += " and again the mill of Halden"
		}
		return s + "."
	}
	for name, c := range map[string]struct {
		facts   []model.BriefFact
		related [][2]int
		want    []model.BriefSentence
	}{
		"the fuller first, and what adds nothing is cited": {
			settled("The mill opened in 2019.", "Owls nest in Moss.", "The mill in Halden opened in 2019 with 320 workers."), [][2]int{{1, 3}},
			[]model.BriefSentence{{Text: "The mill in Halden opened in 2019 with 320 workers.", Facts: []int{3, 1}}, {Text: "Owls nest in Moss.", Facts: []int{2}}}},
		"what adds something is told behind it": {
			settled("The mill in Halden opened in 2019", "The mill in Halden has 320 workers and 9 dryers."), [][2]int{{1, 2}},
			[]model.BriefSentence{{Text: "The mill in Halden has 320 workers and 9 dryers. The mill in Halden opened in 2019", Facts: []int{2, 1}}}},
		"only what is related to the one that is told": {
			settled("The mill opened in 2019.", "The mill in Halden opened in 2019 for 9 million euros.", "A mill took 9 million euros."), [][2]int{{1, 2}, {1, 3}},
			[]model.BriefSentence{{Text: "The mill in Halden opened in 2019 for 9 million euros.", Facts: []int{2, 1}}, {Text: "A mill took 9 million euros.", Facts: []int{3}}}},
		"too long for one": {
			settled(long("The mill opened in 2019"), long("The mill in Moss opened in 2020 with 320 workers")), [][2]int{{1, 2}},
			[]model.BriefSentence{{Text: long("The mill in Moss opened in 2020 with 320 workers"), Facts: []int{2}}, {Text: long("The mill opened in 2019"), Facts: []int{1}}}},
		"of a fact that is no finding": {settled("Owls nest in Moss."), [][2]int{{1, 9}}, []model.BriefSentence{{Text: "Owls nest in Moss.", Facts: []int{1}}}},
		"Japanese": {settled("工場は2019年に開業した", "工場には320人が勤務している。"), [][2]int{{1, 2}},
			[]model.BriefSentence{{Text: "工場には320人が勤務している。工場は2019年に開業した", Facts: []int{2, 1}}}},
	} {
		got := brief(model.BriefTask{Question: "?", Facts: c.facts, Related: c.related}).Findings
		require.Equal(t, c.want, got, name)
	}
}
