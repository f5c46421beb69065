package brief

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/notebook"
)

func TestABriefAsMarkdown(t *testing.T) {
	t.Parallel()
	cost := costs
	cost.Source = &event.Source{URL: "https://a.example/x", Title: "On *cost*", PublishedAt: pointer(day("2025-02-03"))}
	alone := fact("Nobody knows why.")
	alone.Source = nil
	th := state(rises, falls, cost, alone)
	disputing(th, rises, falls)
	brief := materialOf(th).brief(model.Brief{
		Findings:      []model.Cited{{Text: "It costs.", Facts: []string{alone.ID, cost.ID}}, {Text: "2. It_costs_.", Facts: []string{cost.ID}}},
		Gaps:          []model.Cited{{Text: "Safety is open."}},
		Relationships: []model.Cited{{Text: "Both matter.", Facts: []string{cost.ID}}},
		Dropped:       1,
		Outcome:       model.Outcome{Engine: model.EngineOllama, Model: "small_model:1b", Drops: model.Drops{model.DropNoFact: 1}},
	})
	require.Equal(t, strings.Join([]string{
		"## Findings",
		"",
		"- It costs. [1] [2]",
		`- 2\. It\_costs\_. [2]`,
		"",
		"## Disputed",
		"",
		"- “The cell of Acme keeps 90 percent after 1,000 cycles” contradicts “The cell of Acme keeps 60 percent after 1,000 cycles”. [3] [4]",
		"",
		"## Gaps",
		"",
		"- Safety is open.",
		"",
		"## Relationships",
		"",
		"- Both matter. [2]",
		"",
		"## Facts",
		"",
		"1. Nobody knows why. (no single source)",
		`2. A pack costs 139 dollars per kWh in 2024. ([On \*cost\*](<https://a.example/x>), a.example, 2025-02-03)`,
		"3. The cell of Acme keeps 90 percent after 1,000 cycles. " + origin(rises.Source),
		"4. The cell of Acme keeps 60 percent after 1,000 cycles. " + origin(falls.Source),
		"",
		"---",
		"",
		`Written by small\_model:1b (ollama) from 4 of 4 facts that 0 runs brought.`,
		"1 sentence was dropped (no fact).",
		"",
	}, "\n"), brief.Markdown)
}

func TestTheMarksOfASentenceAreInOrder(t *testing.T) {
	t.Parallel()
	th := state(rises, costs)
	brief := materialOf(th).brief(model.Brief{
		Findings: []model.Cited{{Text: "It costs.", Facts: []string{costs.ID}}, {Text: "It rises as it costs.", Facts: []string{rises.ID, costs.ID}}},
		Outcome:  model.Outcome{Drops: model.Drops{}},
	})
	require.Contains(t, brief.Markdown, "- It rises as it costs. [1] [2]\n")
}

func TestABriefSaysWhatItsRunsDidNotKeep(t *testing.T) {
	t.Parallel()
	th := state(rises)
	th.Runs["run1"] = &notebook.Run{ID: "run1", Completed: &notebook.Completion{}, LeftOut: 3}
	th.RunIDs = []string{"run1"}
	brief := materialOf(th).brief(model.Brief{Outcome: model.Outcome{Drops: model.Drops{}}})
	require.Contains(t, brief.Markdown, "\n3 more statements of the reports were not kept: each run keeps the 20 surest.\n")
}

func TestABriefOfARecordingSaysSo(t *testing.T) {
	t.Parallel()
	const whole = "Made from a recorded run, not from research done for this question."
	th := state(rises, costs)
	th.Runs["run1"] = &notebook.Run{ID: "run1", Requested: event.RunRequested{Replay: true}, Completed: &notebook.Completion{}}
	th.RunIDs = []string{"run1"}
	markdown := func() string { return materialOf(th).brief(model.Brief{}).Markdown }
	require.NotContains(t, markdown(), "recorded")
	th.Facts[rises.ID].Replayed = true
	require.Contains(t, markdown(), "\n1 of 2 facts comes from a recorded run, not from research done for this question.\n")
	th.Facts[costs.ID].Replayed = true
	require.Contains(t, markdown(), "\n\n"+whole+"\n")
	th.Runs["run2"] = th.Runs["run1"]
	th.RunIDs = append(th.RunIDs, "run2")
	require.Contains(t, markdown(), "Made from recorded runs, not from")
	clear(th.Facts)
	th.FactIDs, th.RunIDs = nil, th.RunIDs[:1]
	require.Contains(t, markdown(), whole)
	th.Runs["run1"].Requested.Replay = false
	require.NotContains(t, markdown(), "recorded")
}

func TestTextOfOutsideIsInert(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain words, 5.5% of it": "plain words, 5.5% of it",
		"a\n# b":                  "a # b",
		"# a":                     `\# a`,
		"- a":                     `\- a`,
		"12. a":                   `12\. a`,
		"12) a":                   `12\) a`,
		"2024-05-01 was a day":    "2024-05-01 was a day",
		"---":                     `\---`,
		"<b>x</b>":                `\<b\>x\</b\>`,
		"[a](javascript:x)":       `\[a\](javascript:x)`,
		"![a](b)":                 `!\[a\](b)`,
		"&lt;":                    `\&lt;`,
		"see http://x.y":          `see http\://x.y`,
		"see www.x.y":             `see www\.x.y`,
		"a@b.c":                   `a\@b.c`,
		`back\slash`:              `back\\slash`,
		"a|b ~~c~~ `d`":           "a\\|b \\~\\~c\\~\\~ \\`d\\`",
		"turned \u202Etxt.exe":    "turned txt.exe",
		"\x00nul \ufeffbom":       "nul bom",
	} {
		require.Equal(t, want, escape(in), in)
	}
}

func TestOnlyWebAddressesAreLinked(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://a.example/x?y=1&z=2#q":   "https://a.example/x?y=1&z=2#q",
		"https://a.example/?a&copy;=2":    `https://a.example/?a\&copy;=2`,
		"http://a.example/<x> y":          "http://a.example/%3Cx%3E%20y",
		`https://a.example/\x`:            "https://a.example/%5Cx",
		"https://bank.example@evil.test/": "https://evil.test/",
		"javascript:alert(1)":             "",
		"data:text/html,x":                "",
		"//a.example/x":                   "",
		"ftp://a.example/":                "",
		"not a url":                       "",
		"":                                "",
		"https://a.example/" + strings.Repeat("x", maxURL): "",
	} {
		target, _ := link(in)
		require.Equal(t, want, target, in)
	}
	for want, source := range map[string]event.Source{
		"([A](<https://www.a.example/x>), a.example)": {Title: "A", URL: "https://www.a.example/x"},
		"([a.example](<https://a.example/x>))":        {URL: "https://a.example/x"},
		"(A, a.example)":                              {Title: "A", URL: "https://a.example/" + strings.Repeat("x", maxURL)},
		"(A)":                                         {Title: "A", URL: "javascript:alert(1)"},
		"(untitled)":                                  {},
		`([x\](https\://evil.test)](<https://a.example/>), a.example)`: {Title: "x](https://evil.test)", URL: "https://a.example/"},
	} {
		require.Equal(t, want, origin(&source))
	}
}

func FuzzEscapedTextReadsAsItWas(f *testing.F) {
	for _, s := range []string{"- a", "1. b", "a_b*c*", "<x>", "http://x", "www.x", "a\n\nb", `\`, "WwW.x", "&#x41;"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		out := escape(s)
		if strings.ContainsAny(out, "\n\r") {
			t.Fatalf("%q gives several lines: %q", s, out)
		}
		var read strings.Builder
		for rest := out; rest != ""; {
			if rest[0] == '\\' {
				rest = rest[1:]
			} else if strings.IndexByte("`*_[]<>&|~@", rest[0]) >= 0 {
				t.Fatalf("%q leaves a mark: %q", s, out)
			}
			read.WriteByte(rest[0])
			rest = rest[1:]
		}
		if read.String() != plain(s) {
			t.Fatalf("%q reads %q, not %q", s, read.String(), plain(s))
		}
	})
}

func FuzzLinkStaysInItsBrackets(f *testing.F) {
	for _, s := range []string{"https://a.example/<>", "http://a b", "https://x/\n", "https://x/?&amp;", `https://x/\>`, "https://é.example/ü"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		target, _ := link(s)
		if target == "" {
			return
		}
		if !strings.HasPrefix(target, "http://") && !strings.HasPrefix(target, "https://") {
			t.Fatalf("%q links to %q", s, target)
		}
		for _, c := range []byte(target) {
			if c <= ' ' || c >= 0x7f || c == '<' || c == '>' {
				t.Fatalf("%q links to %q", s, target)
			}
		}
	})
}
