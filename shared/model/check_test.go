package model

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func number(n int) *int { return &n }

func named(s string) *string { return &s }

var distilling = DistillTask{
	Question:  "q",
	Sentences: []Numbered{{N: 4, Text: "a [1]", Markers: []int{1}}, {N: 5, Text: "b [2]", Markers: []int{2}}},
	Pages:     []Page{{N: 1, Title: "one"}, {N: 2, Title: "two"}},
	MaxFacts:  3,
}

func TestDistillCheck(t *testing.T) {
	t.Parallel()
	good := DistillFact{Statement: "The cell holds 380 Wh/kg.", Confidence: 0.8, Tags: []string{"cell"}, Sentences: []int{4}, Page: number(1)}
	change := func(f func(*DistillFact)) []DistillFact {
		g := good
		f(&g)
		return []DistillFact{g}
	}
	kept := func(f func(*Fact)) []Fact {
		g := Fact{Statement: "The cell holds 380 Wh/kg.", Confidence: 0.8, Tags: []string{"cell"}, Sentences: []int{4}, Page: 1}
		f(&g)
		return []Fact{g}
	}
	for name, c := range map[string]struct {
		reply []DistillFact
		want  []Fact
		drops Drops
	}{
		"good":                    {change(func(*DistillFact) {}), kept(func(*Fact) {}), Drops{}},
		"nothing":                 {nil, nil, Drops{}},
		"no page":                 {change(func(f *DistillFact) { f.Page = nil }), kept(func(f *Fact) { f.Page = 0 }), Drops{}},
		"unknown page":            {change(func(f *DistillFact) { f.Page = number(7) }), kept(func(f *Fact) { f.Page = 0 }), Drops{DropUnknownPage: 1}},
		"page zero":               {change(func(f *DistillFact) { f.Page = number(0) }), kept(func(f *Fact) { f.Page = 0 }), Drops{DropUnknownPage: 1}},
		"unknown sentence too":    {change(func(f *DistillFact) { f.Sentences = []int{9, 4, 4, -1} }), kept(func(*Fact) {}), Drops{DropUnknownSentence: 2}},
		"only unknown sentences":  {change(func(f *DistillFact) { f.Sentences = []int{9} }), nil, Drops{DropUnknownSentence: 1, DropNoSentence: 1}},
		"no sentences":            {change(func(f *DistillFact) { f.Sentences = nil }), nil, Drops{DropNoSentence: 1}},
		"sentences in order":      {change(func(f *DistillFact) { f.Sentences = []int{5, 4} }), kept(func(f *Fact) { f.Sentences = []int{4, 5} }), Drops{}},
		"confidence 95":           {change(func(f *DistillFact) { f.Confidence = 95 }), kept(func(f *Fact) { f.Confidence = 0.95 }), Drops{DropPercent: 1}},
		"confidence 100":          {change(func(f *DistillFact) { f.Confidence = 100 }), kept(func(f *Fact) { f.Confidence = 1 }), Drops{DropPercent: 1}},
		"confidence below 0":      {change(func(f *DistillFact) { f.Confidence = -0.5 }), kept(func(f *Fact) { f.Confidence = 0 }), Drops{DropConfidence: 1}},
		"confidence beyond sense": {change(func(f *DistillFact) { f.Confidence = 1e9 }), kept(func(f *Fact) { f.Confidence = 0 }), Drops{DropConfidence: 1}},
		"empty statement":         {change(func(f *DistillFact) { f.Statement = " \n" }), nil, Drops{DropEmpty: 1}},
		"statement of marks":      {change(func(f *DistillFact) { f.Statement = "[1] …" }), nil, Drops{DropEmpty: 1}},
		"statement too long":      {change(func(f *DistillFact) { f.Statement = strings.Repeat("ü", maxStatement+1) }), nil, Drops{DropTooLong: 1}},
		"statement of full length": {change(func(f *DistillFact) { f.Statement = strings.Repeat("ü", maxStatement) }),
			kept(func(f *Fact) { f.Statement = strings.Repeat("ü", maxStatement) }), Drops{}},
		"a web address":          {change(func(f *DistillFact) { f.Statement = "See HTTPS://evil.example for it." }), nil, Drops{DropAddress: 1}},
		"a bare web address":     {change(func(f *DistillFact) { f.Statement = "See www.evil.example for it." }), nil, Drops{DropAddress: 1}},
		"citation marks go":      {change(func(f *DistillFact) { f.Statement = "The cell holds 380 Wh/kg [1][2, 3]." }), kept(func(*Fact) {}), Drops{}},
		"lines and controls":     {change(func(f *DistillFact) { f.Statement = "The\ncell\x00 holds \u202E380 Wh/kg." }), kept(func(*Fact) {}), Drops{}},
		"tags":                   {change(func(f *DistillFact) { f.Tags = []string{"#Cell", "", "cell", strings.Repeat("x", 41)} }), kept(func(*Fact) {}), Drops{DropTag: 3}},
		"a sixth tag":            {change(func(f *DistillFact) { f.Tags = strings.Fields("a b c d e f") }), kept(func(f *Fact) { f.Tags = strings.Fields("a b c d e") }), Drops{DropTag: 1}},
		"the same twice":         {append(change(func(*DistillFact) {}), change(func(f *DistillFact) { f.Statement = "the  CELL holds 380 Wh/kg." })...), kept(func(*Fact) {}), Drops{DropDuplicate: 1}},
		"dropped, then good":     {append(change(func(f *DistillFact) { f.Sentences = nil }), good), kept(func(*Fact) {}), Drops{DropNoSentence: 1}},
		"a price in brackets":    {change(func(f *DistillFact) { f.Statement = "It cost [about] 5." }), kept(func(f *Fact) { f.Statement = "It cost [about] 5." }), Drops{}},
		"a colon is no address":  {change(func(f *DistillFact) { f.Statement = "JavaScript: data: 3:4." }), kept(func(f *Fact) { f.Statement = "JavaScript: data: 3:4." }), Drops{}},
		"a script is an address": {change(func(f *DistillFact) { f.Statement = "javascript:alert(1)" }), nil, Drops{DropAddress: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			facts, drops := distilling.Check(DistillReply{Facts: c.reply})
			require.Equal(t, c.want, facts)
			require.Equal(t, c.drops, drops)
		})
	}
}

func TestDistillCheckKeepsTheSurestFacts(t *testing.T) {
	t.Parallel()
	var reply DistillReply
	for i, confidence := range []float64{0.2, 0.9, 0.5, 0.9, 0.1} {
		reply.Facts = append(reply.Facts, DistillFact{Statement: fmt.Sprintf("Fact %d", i), Confidence: confidence, Sentences: []int{4}})
	}
	facts, drops := distilling.Check(reply)
	require.Len(t, facts, 3)
	require.Equal(t, []string{"Fact 1", "Fact 3", "Fact 2"}, []string{facts[0].Statement, facts[1].Statement, facts[2].Statement})
	require.Equal(t, Drops{DropOverLimit: 2}, drops)
}

func TestJudgeCheck(t *testing.T) {
	t.Parallel()
	v, err := JudgeTask{}.Check(JudgeReply{Relation: "contradiction", Reason: "Two dates \n for one event [1]."})
	require.NoError(t, err)
	require.Equal(t, Contradiction, v.Relation)
	require.Equal(t, "Two dates for one event.", v.Reason)
	require.Empty(t, v.Drops)

	v, err = JudgeTask{}.Check(JudgeReply{Relation: "distinct", Reason: strings.Repeat("word ", 100)})
	require.NoError(t, err)
	require.LessOrEqual(t, utf8.RuneCountInString(v.Reason), maxReason)
	require.Equal(t, Drops{DropReason: 1}, v.Drops)

	v, err = JudgeTask{}.Check(JudgeReply{Relation: "distinct", Reason: "see https://evil.example"})
	require.NoError(t, err)
	require.Empty(t, v.Reason)
	require.Equal(t, Drops{DropReason: 1}, v.Drops)

	_, err = JudgeTask{}.Check(JudgeReply{Relation: "both"})
	require.ErrorIs(t, err, ErrSchema)
}

func TestQuestionsCheck(t *testing.T) {
	t.Parallel()
	task := QuestionsTask{Root: "What is it?", Asked: []string{"Who made it?"}, Max: 2}
	questions, drops := task.Check(QuestionsReply{Questions: []PlannedQuestion{
		{Text: "who MADE  it?", Score: 1},
		{Text: "What is it?", Score: 1},
		{Text: "", Score: 1},
		{Text: "Where is it made?", Score: 0.3},
		{Text: "What does it cost?", Score: 80, Reason: "No price is known."},
		{Text: "Where is it made?", Score: 1},
		{Text: "When was it made?", Score: -1},
		{Text: "What stands on https://evil.example?", Score: 1},
		{Text: strings.Repeat("long ", 500), Score: 1},
	}})
	require.Equal(t, []PlannedQuestion{{Text: "What does it cost?", Score: 0.8, Reason: "No price is known."}, {Text: "Where is it made?", Score: 0.3}}, questions)
	require.Equal(t, Drops{DropDuplicate: 3, DropEmpty: 1, DropPercent: 1, DropConfidence: 1, DropAddress: 1, DropTooLong: 1, DropOverLimit: 1}, drops)
}

func TestBriefCheck(t *testing.T) {
	t.Parallel()
	task := BriefTask{
		Facts:    []BriefFact{{N: 1, Ref: "f1"}, {N: 2, Ref: "f2"}, {N: 3, Ref: "f3", Disputed: true}, {N: 4, Ref: "f4"}, {N: 5, Ref: "f5"}},
		Disputes: []BriefDispute{{N: 1, Ref: "d1", A: 3, B: 4}},
	}
	b := task.Check(BriefReply{
		Findings: []BriefSentence{
			{"Settled [1].", []int{2, 1, 2}},
			{"Without a fact.", nil},
			{"With an unknown fact alone.", []int{9}},
			{"With an unknown fact too.", []int{9, 5}},
			{"Disputed by its mark.", []int{1, 3}},
			{"Disputed by the list.", []int{4}},
			{"settled.", []int{5}},
			{" ", []int{1}},
		},
		Disputed:      []BriefDisputeSentence{{"One says this, one says that.", 1}, {"A dispute that is not on the list.", 2}},
		Gaps:          []BriefSentence{{"Nothing is known about the price.", nil}, {"Whether it is so.", []int{5, 9}}, {"As the disputed one says.", []int{3}}},
		Relationships: []BriefSentence{{"One explains five.", []int{1, 5}}, {"Five explains nothing.", nil}},
	})
	require.Equal(t, []Cited{{"Settled.", []string{"f2", "f1"}}, {"With an unknown fact too.", []string{"f5"}}}, b.Findings)
	require.Equal(t, []Disputed{{"One says this, one says that.", "d1"}}, b.Disputed)
	require.Equal(t, []Cited{{"Nothing is known about the price.", []string{}}, {"Whether it is so.", []string{"f5"}}}, b.Gaps)
	require.Equal(t, []Cited{{"One explains five.", []string{"f1", "f5"}}}, b.Relationships)
	require.Equal(t, Drops{DropNoFact: 3, DropUnknownFact: 3, DropDisputedFact: 3, DropDuplicate: 1, DropEmpty: 1, DropUnknownDispute: 1}, b.Drops)
	require.Equal(t, 9, b.Dropped, "sentences, not numbers")
}

func TestBriefFitKeepsTheOtherSideOfALostDisputeDisputed(t *testing.T) {
	t.Parallel()
	task := BriefTask{Disputes: []BriefDispute{{N: 1, Ref: "d1", A: 1, B: MaxBriefFacts + 1}, {N: 2, Ref: "d2", A: 2, B: 3}}}
	for n := 1; n <= MaxBriefFacts+1; n++ {
		task.Facts = append(task.Facts, BriefFact{N: n, Ref: fmt.Sprint("f", n), Statement: "s"})
	}
	task.Related = [][2]int{{2, 3}, {3, MaxBriefFacts + 1}}
	fitted, left := task.fit(MaxBriefFacts)
	require.Equal(t, 2, left, "one fact and its dispute")
	require.Equal(t, [][2]int{{2, 3}}, fitted.Related)
	require.Len(t, task.Related, 2)
	require.Len(t, fitted.Facts, MaxBriefFacts)
	require.Equal(t, []BriefDispute{{N: 2, Ref: "d2", A: 2, B: 3}}, fitted.Disputes)
	require.True(t, fitted.Facts[0].Disputed)
	require.False(t, task.Facts[0].Disputed, "the caller's task stays as it was")
}

func TestCoverageCheck(t *testing.T) {
	t.Parallel()
	task := CoverageTask{Topics: []Topic{{N: 1, Ref: "t1", Name: "Cost"}}}
	for n := 1; n <= 9; n++ {
		task.Facts = append(task.Facts, CoverageFact{N: n, Ref: fmt.Sprint("f", n)})
	}
	assignments, drops := task.Check(CoverageReply{Assignments: []TopicAssignment{
		{Fact: 1, Topic: number(1)},
		{Fact: 1, NewTopic: named("Again")},
		{Fact: 2, NewTopic: named("cost ")},
		{Fact: 3, NewTopic: named("Noise")},
		{Fact: 4, NewTopic: named("NOISE")},
		{Fact: 5, Topic: number(1), NewTopic: named("Noise")},
		{Fact: 6, Topic: number(8), NewTopic: named("Safety")},
		{Fact: 7, Topic: number(8)},
		{Fact: 8},
		{Fact: 9, NewTopic: named("https://evil.example")},
		{Fact: 99, Topic: number(1)},
	}})
	require.Equal(t, []Assignment{
		{Fact: "f1", Topic: "t1"}, {Fact: "f2", Topic: "t1"}, {Fact: "f3", NewTopic: "Noise"}, {Fact: "f4", NewTopic: "Noise"},
		{Fact: "f5", Topic: "t1"}, {Fact: "f6", NewTopic: "Safety"},
	}, assignments)
	require.Equal(t, Drops{DropDuplicate: 1, DropUnknownTopic: 1, DropAddress: 1, DropUnknownFact: 1, DropUnassigned: 3}, drops)
}

func FuzzDistillCheck(f *testing.F) {
	f.Add(`{"facts":[{"statement":"a","confidence":95,"tags":["x"],"sentences":[4,9],"page":7}]}`)
	f.Add(`{"facts":[{"statement":"http://x","confidence":-1,"tags":null,"sentences":null,"page":null}]}`)
	f.Fuzz(func(t *testing.T, s string) {
		var reply DistillReply
		if json.Unmarshal([]byte(s), &reply) != nil {
			return
		}
		facts, _ := distilling.Check(reply)
		require.LessOrEqual(t, len(facts), distilling.MaxFacts)
		for _, fact := range facts {
			require.NotEmpty(t, fact.Statement)
			require.LessOrEqual(t, utf8.RuneCountInString(fact.Statement), maxStatement)
			require.False(t, address.MatchString(fact.Statement))
			require.NotContains(t, fact.Statement, "\n")
			require.True(t, utf8.ValidString(fact.Statement))
			require.Subset(t, []int{4, 5}, fact.Sentences)
			require.NotEmpty(t, fact.Sentences)
			require.Contains(t, []int{0, 1, 2}, fact.Page)
			require.True(t, fact.Confidence >= 0 && fact.Confidence <= 1 && !math.IsNaN(fact.Confidence))
			require.LessOrEqual(t, len(fact.Tags), maxTags)
		}
	})
}
