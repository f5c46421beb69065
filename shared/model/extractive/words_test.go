package extractive

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/model"
)

// most is the statement that speaks most of a question.
func most(question string, statements ...string) string {
	scores := Relevance(question, statements)
	return statements[slices.Index(scores, slices.Max(scores))]
}

func TestWhatAnswersAQuestionSpeaksMostOfIt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		question, answer string
		others           []string
	}{
		{"How close are solid-state batteries to mass production?", "Talmo plans series production of its cells in 2030.",
			[]string{"A steady contact decides how fast the capacity falls.", "A liquid closes the cell.", "Solid glass breaks in 9 hours.", "Talmo has 320 workers.", "Owls nest in Moss."}},
		{"How close are solid-state batteries to mass production?", "Volume production is planned for 2030.", []string{"Production costs 40 euros.", "A mass of 9 kg is close to 10.", "How cells age is open."}},
		{"How far is the bridge to Moss?", "The bridge is to open in 2031.", []string{"The bridge has 40 arches.", "How far owls fly is open.", "Salt falls far from the coast in 2029."}},
		{"How much does the mill cost?", "The mill took 40 million euros.", []string{"The mill burns bark.", "How it burns is open.", "Much of the bark is wet."}},
		{"Who operates the mill?", "The mill belongs to Halden Paper.", []string{"The mill burns bark.", "The mill is old.", "Owls nest in Moss."}},
		{"When does the mill open?", "The mill is to open in 2031.", []string{"The mill burns bark.", "Whales were seen in 2019.", "The doors open to the north."}},
		{"Wie nah sind Festkörperbatterien an der Serienproduktion?", "Talmo plant die Produktion für 2030.",
			[]string{"Ein naher Kontakt entscheidet, wie schnell die Kapazität sinkt.", "Wie Zellen altern, ist offen.", "Talmo hat 320 Beschäftigte."}},
		{"À quel point les batteries solides sont-elles proches de la production de masse ?", "Talmo prévoit une production en 2030.",
			[]string{"Un contact proche est un point faible.", "Une masse de 9 kg tombe.", "Talmo a 320 salariés."}},
		{"¿Qué tan cerca están las baterías de la producción en masa?", "Talmo prevé la producción en 2030.",
			[]string{"El río está cerca de la planta.", "Tan pronto cae la capacidad.", "Talmo tiene 320 trabajadores."}},
	} {
		for at := range c.others {
			statements := slices.Insert(slices.Clone(c.others), at, c.answer)
			require.Equal(t, c.answer, most(c.question, statements...), c.question)
		}
	}
	require.Equal(t, []float64{0, 0}, Relevance("How and why?", []string{"How it burns is open.", "Why it burns is open."}), "what only asks")

	got := Relevance("What do mills cost?", []string{"It took a year.", "It took a year."}, []string{"mills"}, nil)
	require.Greater(t, got[0], got[1], "a heading speaks for what stands under it")
}

func TestAGapNamesAllThatIsCompared(t *testing.T) {
	t.Parallel()
	for question, want := range map[string]string{
		"Is tea healthier than coffee?":                      "No fact so far says whether tea is healthier than coffee.",
		"Is the mill in Moss more expensive than a harbour?": "No fact so far says whether the mill in Moss is more expensive than a harbour.",
		"Ist Tee gesünder als Kaffee?":                       "Bisher sagt kein Fakt, ob Tee gesünder als Kaffee ist.",
		"Le thé est-il plus sain que le café ?":              "Aucun fait ne dit encore si le thé est plus sain que le café.",
		"¿Es el té más sano que el café?":                    "Ningún hecho dice todavía si el té es más sano que el café.",
	} {
		require.Equal(t, []string{want}, gapsOf(question, "Talmo sold 900 pumps in 2019."), question)
	}
	require.Empty(t, gapsOf("Is tea healthier than coffee?", "Coffee raises the pulse by 9 percent."), "both are spoken of, or too short to tell")
}

func TestNoQuestionIsAskedInTwoForms(t *testing.T) {
	t.Parallel()
	one := func(statement string) model.KnownFact {
		f := known(statement)
		f.Pages = 1
		return f
	}
	const root = "When does the mill of Halden Paper open?"
	pair := model.StatementPair{A: "Halden Paper plans to open its second mill in 2026.", B: "Halden Paper expects to open the second mill of the town in 2029."}
	got := asked(model.QuestionsTask{Root: root, Contradictions: []model.StatementPair{pair}, Known: []model.KnownFact{
		one("The second mill of Halden Paper is to open in 2029."),
		one("Halden Paper now gives 2029 as the opening of the second mill; the harbour is older."),
		one(pair.A + " It has 40 dryers."),
	}})
	require.Equal(t, []string{"Which is right: “Halden Paper plans to open its second mill in 2026”, or “Halden Paper expects to open the second mill of the town in 2029”?"}, got)

	got = asked(model.QuestionsTask{Root: root, Known: []model.KnownFact{
		one("The mill of Halden Paper opened in 2019 with 320 workers."), one("In 2019 the mill of Halden Paper opened with 320 workers."),
	}})
	require.Len(t, got, 1)
}

func TestAQuestionQuotesWholeSentences(t *testing.T) {
	t.Parallel()
	long := "The mill of Halden Paper was opened in 2019 with 320 workers, 40 dryers and 9 presses that were brought from the harbour of Moss by 12 barges over the winter, " +
		"and it was closed in 2021 after a fire in the dryers that took 40 hours to put out."
	got := asked(model.QuestionsTask{Root: "Who owns the mill?", Contradictions: []model.StatementPair{{A: long, B: strings.Replace(long, "2019", "2018", 1)}}})
	require.NotContains(t, got[0], "…")
	require.Contains(t, got[0], "took 40 hours to put out”, or “")

	require.Equal(t, "The mill burns bark in 2019", quoteWhole("The mill burns bark in 2019. It has 40 dryers.", 40))
	require.Equal(t, "The mill burns bark in 2019", quoteWhole("The mill burns bark in 2019, and it has 40 dryers.", 40))
	require.Equal(t, "Die Mühle brennt seit 2019", quoteWhole("Die Mühle brennt seit 2019, aber sie hat 40 Trockner.", 40))
	require.Equal(t, "The mill burns bark in the…", quoteWhole("The mill burns bark in the harbour of Moss near Halden.", 30))
}

func TestWhatNoFactSpeaksOfIsNotAskedFurther(t *testing.T) {
	t.Parallel()
	task := model.QuestionsTask{Root: "Is tea healthier than coffee?", ThinTopics: []string{"energy density"}, Known: []model.KnownFact{known("Cells reach 450 Wh/kg.")}}
	require.Equal(t, []string{"On the question “Is tea healthier than coffee”: what is known about coffee?"}, asked(task))
	task.Known = append(task.Known, known("Coffee has an energy density of 9 kJ/kg."))
	require.Contains(t, asked(task)[0], "energy density")
	for _, topic := range []string{"trade article", "press releases", "lines", "healthier", "Fachartikel"} {
		require.False(t, specific(topic, task.Root), topic)
	}
}

func TestTagsAndTopicsNameSomething(t *testing.T) {
	t.Parallel()
	task := model.DistillTask{Question: "Who makes cells?", MaxFacts: 9, Pages: []model.Page{{N: 1}}}
	for i, s := range []string{
		"The pilot line of Talmo has 40 layers and was started in 2019.", "A pilot line of Moss has 12 layers on one line.", "The article gives 2019 as the start of the pilot line.",
	} {
		task.Sentences = append(task.Sentences, model.Numbered{N: i + 1, Text: s, Markers: []int{1}})
	}
	for _, f := range distill(task).Facts {
		require.Contains(t, f.Tags, "pilot line")
		require.NotRegexp(t, `^(line|lines|layers|start|started|article|pilot)$`, strings.Join(f.Tags, "\n"))
		for _, tag := range f.Tags {
			require.False(t, vagueName(tag), tag)
		}
	}
	for name, want := range map[string]bool{
		"lines": true, "trade article": true, "press releases": true, "Fachartikel": true, "consortium": true, "earlier versions": true,
		"pilot line": false, "halden paper": false, "heat sources": false, "cost": false, "MEMO-2": false, "ligne pilote": false, "固体電池": false,
	} {
		require.Equal(t, want, vagueName(name), name)
	}
	coverage := model.CoverageTask{Question: "How close are solid-state batteries to mass production?", Facts: []model.CoverageFact{
		{N: 1, Statement: "No solid-state car is sold in 2026."}, {N: 2, Statement: "Nine lines were started in May.", Tags: []string{"lines"}}, {N: 3, Statement: "Ten lines were stopped in June.", Tags: []string{"lines"}},
	}}
	for _, a := range cover(coverage).Assignments {
		require.NotRegexp(t, "^(solid-state car|lines?)$", *a.NewTopic)
	}
	require.Equal(t, "solid-state batteries", *cover(coverage).Assignments[0].NewTopic)
}

func TestOneFindingSaysAThingOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		adds bool
	}{
		{"Sales of pumps increased in Moss in 2019.", "In 2019 Talmo's sales of heat pumps rose in Moss.", false},
		{"The mill opened in 2019.", "The opening of the mill in Halden was in 2019.", false},
		{"The mill has 40 dryers.", "The mill opened in 2019.", true},
		{"Owls nest in the mill.", "The mill burns.", true},
		{"The mill cost 40 euros.", "The mill cost 90 euros.", true},
	} {
		require.Equal(t, c.adds, adds(c.a, c.b), c.a)
	}
}
