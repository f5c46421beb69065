package extractive

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/model"
)

// What broke the rules for what only one can have, each in either order: no panic, and the relation is not the one that was wrong.
func TestWhatBrokeTheJudge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		not  model.Relation
	}{
		{"48 all mines were closed in Orden and Tessen.", "31 of the 48 mines were closed in Orden and Tessen.", ""},
		{"48 toutes les mines ont été fermées à Orden.", "31 des 48 mines ont été fermées à Orden.", ""},
		{"48 alle Gruben wurden in Orden geschlossen.", "31 der 48 Gruben wurden in Orden geschlossen.", ""},
		{"48 / 31 of the mines were closed in Orden and Tessen.", "All 48 mines were closed in Orden and Tessen.", ""},
		{"100 schools closed there in Moss.", "100 31 sur place closed there in Moss.", ""},
		{"Twice as many men as women smoke.", "Half as many women as men smoke.", model.Contradiction},
		{"The hospital was directed by Anton Reck.", "The hospital was directed by Clara Mond.", model.Contradiction},
		{"El museo fue dirigido por Anton Reck.", "El museo fue dirigido por Clara Mond.", model.Contradiction},
		{"The app was bought by Brandt Group in 2019.", "The app was bought by Carrow Holdings in 2019.", model.Contradiction},
		{"The town hall was built by King Oskar.", "The town hall was built by Anton Reck.", model.Contradiction},
		{"The bridge was built by the Orden City Council.", "The bridge was built by Brandt Group.", model.Contradiction},
		{"The hotel was built by Lake Orden.", "The hotel was built by Lake Tessen.", model.Contradiction},
		{"Otto Reiners gründete den Verein mit.", "Emil Kastner gründete den Verein.", model.Contradiction},
		{"Das Schloss wurde auf Wunsch von Otto Reiners gebaut.", "Das Schloss wurde auf Wunsch von Emil Kastner gebaut.", model.Contradiction},
		{"According to legend, the church was built by Anton Reck.", "The church was built by Milo Sandt.", model.Contradiction},
		{"All 20 mines were to be closed.", "12 of the 20 mines were closed.", model.Contradiction},
		{"Alle 20 Gruben werden geschlossen.", "12 der 20 Gruben wurden geschlossen.", model.Contradiction},
		{"The report was written by Anton Reck.", "The report was written for Anton Reck.", model.Duplicate},
		{"Das Haus wurde von Otto Reiners gebaut.", "Das Haus wurde für Otto Reiners gebaut.", model.Duplicate},
		{"La maison a été construite par Anton Reck.", "La maison a été construite pour Anton Reck.", model.Duplicate},
		{"La casa fue construida por Anton Reck.", "La casa fue construida para Anton Reck.", model.Duplicate},
	} {
		for _, order := range [][2]string{{c.a, c.b}, {c.b, c.a}} {
			got, why := judge(order[0], order[1])
			if c.not != "" {
				require.NotEqual(t, c.not, got, "%s\n%s\n%s", order[0], order[1], why)
			}
		}
	}
}

// Words that the rules look for, in any order and with figures anywhere, are judged without a panic, and contradict whichever comes first.
func TestAnyWordsAreJudged(t *testing.T) {
	t.Parallel()
	words := strings.Fields(`48 31 100 12% all all. of the sur der von by built bought largest second-largest twice half as many only mines Orden
		, . and / → | toutes alle les were been was not Anton Reck in 2019 insgesamt ofthe 1/3 erste troisième mayor que`)
	r := rand.New(rand.NewPCG(7, 7))
	text := func() string {
		n := 1 + r.IntN(9)
		some := make([]string, n)
		for i := range some {
			some[i] = words[r.IntN(len(words))]
		}
		return strings.Join(some, " ")
	}
	for range 4000 {
		a, b := text(), text()
		require.NotPanics(t, func() {
			there, _ := judge(a, b)
			back, _ := judge(b, a)
			require.Equal(t, there == model.Contradiction, back == model.Contradiction, "%q, %q", a, b)
		}, "%q, %q", a, b)
	}
}

// A list that is nested without end is read in a time that grows with its length.
func TestAListThatIsNestedWithoutEndIsReadOnce(t *testing.T) {
	t.Parallel()
	var task model.DistillTask
	add := func(depth int, text string, marks ...int) {
		task.Sentences = append(task.Sentences, model.Numbered{N: len(task.Sentences) + 1, Depth: depth, Text: strings.Repeat("- ", min(depth, 8)) + text, Markers: marks})
	}
	const deep = 120
	for d := range deep {
		add(d+1, fmt.Sprintf("Label%d of thing%d:", d, d*7))
	}
	for i := range 20 {
		add(deep+1, fmt.Sprintf("cost %d euros", i+2), 1)
	}
	task.Pages, task.MaxFacts, task.Question = []model.Page{{N: 1}}, 20, "What does it cost?"
	distilled, err := model.Distill(t.Context(), model.Call{Model: New()}, task)
	require.NoError(t, err)
	for _, f := range distilled.Facts {
		require.LessOrEqual(t, len([]rune(f.Statement)), 2*maxJoined)
	}
}
