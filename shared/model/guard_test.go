package model

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func guarded(t *testing.T, elder, newer string) Verdict {
	t.Helper()
	v, err := JudgeTask{Elder: Statement{Text: elder}, Newer: Statement{Text: newer}}.Check(JudgeReply{Reason: "same", Relation: "duplicate"})
	require.NoError(t, err)
	return v
}

func TestGuard(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ elder, newer, cause string }{
		// A figure that the elder lacks.
		{"The bridge is long.", "The bridge is 400 metres long.", DropNewFigure},
		{"The bridge is 300 metres long.", "The bridge is 400 metres long.", DropNewFigure},
		{"The drug lowers the risk by 30 percent.", "The drug lowers the risk by 30 percent in 1,200 patients.", DropNewFigure},
		{"The mill was closed.", "The mill was closed in 1998.", DropNewFigure},
		{"The mill was closed in 1997.", "The mill was closed in 1998.", DropNewFigure},
		{"Die Brücke ist lang.", "Die Brücke ist 1.200 Meter lang.", DropNewFigure},
		{"Le pont est long.", "Le pont est long de 400 mètres.", DropNewFigure},
		// The same in another spelling or unit, in words, or less in the newer.
		{"The bridge is 400 metres long.", "The bridge is long.", ""},
		{"The bridge is 400 metres long.", "The bridge is 0.4 km long.", ""},
		{"About 100,000 miles.", "About 161,000 kilometres.", ""},
		{"Half of the schools are closed.", "50 percent of the schools are closed.", ""},
		{"Twelve schools are closed.", "12 schools are closed.", ""},
		{"Sales doubled.", "Sales rose by 100 percent.", ""},
		{"A third of the schools are closed.", "33 percent of the schools are closed.", ""},
		{"The plan costs 1,200,000 euros.", "The plan costs 1.2 million euros.", ""},
		{"El plan afecta a 1,2 millones.", "El plan afecta a 1.200.000.", ""},
		{"Der Plan kostet 1.200 Euro.", "Der Plan kostet 1 200 Euro.", ""},
		{"Die Hälfte der Schulen ist zu.", "50 Prozent der Schulen sind zu.", ""},
		{"十二所学校关闭。", "12所学校关闭。", ""},
		{"The share rose from 10 to 20 percent.", "The share rose by 10 percentage points.", ""},
		{"60 percent voted for it.", "40 percent did not vote for it.", ""},
		{"It weighs 10 stone.", "It weighs 63.5 kg.", ""},
		{"It costs 10 dollars.", "It costs 9 euros.", ""},
		{"It was founded last year.", "It was founded in 2023.", ""},
		{"It rose in 2023/24.", "It rose in 2024.", ""},
		{"All of the members agreed.", "100 percent of the members agreed.", ""},
		{"It ran from 1990 to 2000.", "It ran for 10 years.", ""},
		// The same figures in other places.
		{"Argentina won the final 4–2.", "Argentina won the final 2–4.", DropFigureOrder},
		{"The final ended 3:1.", "The final ended 1:3.", DropFigureOrder},
		{"The odds are 3 to 1.", "The odds are 1 to 3.", DropFigureOrder},
		{"The senate passed it by 51 votes to 49.", "The senate passed it by 49 votes to 51.", DropFigureOrder},
		{"The deadline is 1/2/2026.", "The deadline is 2/1/2026.", DropFigureOrder},
		{"In 2020 it was 10 percent and in 2024 20 percent.", "In 2020 it was 20 percent and in 2024 10 percent.", DropFigureOrder},
		{"日本は韓国に3対1で勝った。", "日本は韓国に1対3で勝った。", DropFigureOrder},
		{"Der Vertrag gilt zwischen 2020 und 2024 für 5 Länder und 7 Städte.", "Der Vertrag gilt zwischen 2020 und 2024 für 7 Länder und 5 Städte.", DropFigureOrder},
		{"The gap between rich and poor fell from 10 to 5 percent.", "The gap between rich and poor fell from 5 to 10 percent.", DropFigureOrder},
		{"The pages 3, 5 and 7 are blank.", "The pages 7, 5 and 3 are blank.", ""},
		{"It holds between 10 and 20 litres.", "It holds between 20 and 10 litres.", ""},
		// Another letter, sign or number behind the same word.
		{"Vitamin B prevents the disease.", "Vitamin D prevents the disease.", DropOtherName},
		{"Hepatitis A is spread by water.", "Hepatitis B is spread by water.", DropOtherName},
		{"King Henry VIII built it.", "King Henry VII built it.", DropOtherName},
		{"Type 1 diabetes is treated.", "Type 2 diabetes is treated.", DropOtherName},
		{"Vitamin B is rare in Denmark.", "Vitamin D is rare in Denmark.", DropOtherName},
		{"Type 1 diabetes affects 12 percent of them.", "Type 2 diabetes affects 12 percent of them.", DropOtherName},
		{"Hepatitis A vaccines: Boston has them.", "Hepatitis B vaccines: Boston has them.", DropOtherName},
		{"Typ-1-Diabetes ist heilbar.", "Typ-2-Diabetes ist heilbar.", DropOtherName},
		{"Category A covers 3 Alpine states.", "Category C covers 3 Alpine states.", DropOtherName},
		{"GPT-4 is better.", "GPT 4 is better.", ""},
		{"Covid-19 spread.", "COVID 19 spread.", ""},
		{"The road A1 is shut.", "The road A11 is shut.", DropOtherName},
		{"The road A11 is shut.", "The road A1 is shut.", DropOtherName},
		{"Article 5 applies.", "Article V applies.", ""},
		{"The bond is rated AA.", "The bond is rated A+.", ""},
		{"The phase III trial failed.", "The phase 3 trial failed.", ""},
		{"Vitamin B12 helps.", "Vitamin B helps.", ""},
		{"J. Roe wrote it.", "Jane Roe wrote it.", ""},
		{"The plant emits carbon dioxide.", "The plant emits CO2.", ""},
		{"The mayor opened a museum.", "A museum was opened by the mayor.", ""},
		{"", "!", ""},
	} {
		v := guarded(t, c.elder, c.newer)
		if c.cause == "" {
			require.Equal(t, Duplicate, v.Relation, "%s | %s | %s", c.elder, c.newer, v.Reason)
			require.Empty(t, v.Drops)
			continue
		}
		require.Equal(t, Distinct, v.Relation, "%s | %s", c.elder, c.newer)
		require.Equal(t, Drops{c.cause: 1}, v.Drops, "%s | %s", c.elder, c.newer)
		require.Contains(t, v.Reason, "It was called a duplicate.")
		require.False(t, v.Related)
	}
}

func TestGuardLeavesOtherVerdicts(t *testing.T) {
	t.Parallel()
	for _, relation := range []Relation{Contradiction, Distinct} {
		v, err := JudgeTask{Elder: Statement{Text: "It is long."}, Newer: Statement{Text: "It is 4 m long."}}.Check(JudgeReply{Reason: "so", Relation: string(relation), Related: true})
		require.NoError(t, err)
		require.Equal(t, Verdict{Relation: relation, Reason: "so", Related: relation == Distinct, Outcome: Outcome{Drops: Drops{}}}, v)
	}
	v, err := JudgeTask{Elder: Statement{Text: "It fell.", Date: "2024-05-01"}, Newer: Statement{Text: "It fell in 2024."}}.Check(JudgeReply{Relation: "duplicate"})
	require.NoError(t, err)
	require.Equal(t, Duplicate, v.Relation, "the year stands beside the elder")
}

// TestGuardKeepsRightDuplicates: none of the labelled topics is lost, in either order; and a guarded statement is a duplicate of itself.
func TestGuardKeepsRightDuplicates(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("extractive/testdata/pairs/*.jsonl")
	require.NoError(t, err)
	right, contradictions, caught := 0, 0, 0
	for _, name := range files {
		file, err := os.Open(name)
		require.NoError(t, err)
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			var p struct{ Relation, Also, Elder, Newer string }
			require.NoError(t, json.Unmarshal(lines.Bytes(), &p))
			for _, s := range []string{p.Elder, p.Newer} {
				require.Equal(t, Duplicate, guarded(t, s, s+" ").Relation, s)
				require.Equal(t, Duplicate, guarded(t, s, strings.ToUpper(s[:1])+s[1:]).Relation, s)
			}
			switch {
			case p.Relation == "duplicate" && p.Also == "":
				right++
				for _, order := range [][2]string{{p.Elder, p.Newer}, {p.Newer, p.Elder}} {
					v := guarded(t, order[0], order[1])
					require.Equal(t, Duplicate, v.Relation, "%s\n%s\n%s", order[0], order[1], v.Reason)
				}
			case p.Relation == "contradiction":
				contradictions++
				if guarded(t, p.Elder, p.Newer).Relation != Duplicate {
					caught++
				}
			}
		}
	}
	t.Logf("right duplicates kept: %d of %d; contradictions that a model might call duplicates, caught: %d of %d", right, right, caught, contradictions)
	require.Greater(t, right, 120)
	require.Greater(t, 3*caught, contradictions)
}

// TestGuardCatchesAddedFigures puts a figure, a year or a letter into statements that have none of it.
func TestGuardCatchesAddedFigures(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"The valley flooded", "Der Damm brach", "Le barrage a cédé", "La presa se rompió", "La diga ha ceduto", "Плотина прорвалась"} {
		for _, added := range []string{" 37 times", " in 1987", " by 37 percent", " (37 km)", " 1,234"} {
			require.Equal(t, Distinct, guarded(t, s+".", s+added+".").Relation, s+added)
			require.Equal(t, Duplicate, guarded(t, s+added+".", s+".").Relation, s+added)
		}
	}
}
