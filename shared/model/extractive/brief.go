package extractive

import (
	"fmt"
	"slices"
	"strings"

	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/text"
)

// Limits of a brief: it is to be read.
const (
	maxFindings      = 24
	maxRelationships = 5
	maxGaps          = 3
	maxSide          = 250 // characters of each side of a dispute
)

// brief gives the undisputed facts as they are, those that say the same as one finding; the disputes, both sides quoted; the words of
// the question that no fact has; and the names that join facts.
func brief(task model.BriefTask) model.BriefReply {
	reply := model.BriefReply{Findings: []model.BriefSentence{}, Disputed: []model.BriefDisputeSentence{}, Gaps: []model.BriefSentence{}, Relationships: []model.BriefSentence{}}
	statements := map[int]string{}
	for _, f := range task.Facts {
		statements[f.N] = f.Statement
	}
	settled, _ := undisputed(task)
	p := phrasesFor(task.Question)
	reply.Findings = findings(settled)
	for _, d := range task.Disputes {
		reply.Disputed = append(reply.Disputed, model.BriefDisputeSentence{Dispute: d.N, Text: fmt.Sprintf(p.disputed, Quoted(statements[d.A], maxSide), Quoted(statements[d.B], maxSide))})
	}
	if missing := uncovered(task); len(missing) > 0 {
		reply.Gaps = append(reply.Gaps, model.BriefSentence{Text: fmt.Sprintf(p.uncovered, strings.Join(missing, ", ")), Facts: []int{}})
	}
	reply.Relationships = relationships(settled, p)
	return reply
}

func findings(settled []model.BriefFact) []model.BriefSentence {
	out := []model.BriefSentence{}
	var claims []*claim // of out
next:
	for _, f := range settled {
		c := read(f.Statement)
		for i := range out {
			if same(claims[i], c) {
				out[i].Facts = append(out[i].Facts, f.N)
				continue next
			}
		}
		if len(out) < maxFindings {
			out, claims = append(out, model.BriefSentence{Text: f.Statement, Facts: []int{f.N}}), append(claims, c)
		}
	}
	return out
}

// uncovered returns words of the question that stand in no fact, disputed ones included.
func uncovered(task model.BriefTask) []string {
	have := map[string]bool{}
	all := strings.Builder{}
	for _, f := range task.Facts {
		for k := range read(f.Statement).keys() {
			have[k] = true
		}
		all.WriteString(strings.ToLower(f.Statement) + "\n")
	}
	facts := all.String()
	var out []string
	for _, t := range read(task.Question).terms {
		if !t.strong() || t.glyph || len(t.poles) > 0 || len(t.raw) < 5 || have[t.key()] || strings.Contains(facts, t.stem) || questionWords[t.low] || slices.Contains(out, t.low) {
			continue
		}
		if out = append(out, t.low); len(out) == maxGaps {
			break
		}
	}
	return out
}

// questionWords ask, and are nothing that a fact could speak of.
var questionWords = wordSet(`which where whether would could should state status current really still known exist explain describe compare likely possible
	welche welcher welches wieviel warum wann wohin quelle quelles quels comment pourquoi combien cuáles cuándo cuánto dónde quale quali quando perché`)

// relationships names what several settled facts have in common: a proper name. It says no more than that.
func relationships(settled []model.BriefFact, p phrasing) []model.BriefSentence {
	facts := map[string][]int{}
	var order []string
	for _, f := range settled {
		for _, name := range read(f.Statement).names() {
			if slices.Contains(facts[name], f.N) {
				continue
			}
			if facts[name] == nil {
				order = append(order, name)
			}
			facts[name] = append(facts[name], f.N)
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return len(facts[b]) - len(facts[a]) })
	out := []model.BriefSentence{}
	for _, name := range order {
		if len(facts[name]) >= 2 && len(out) < maxRelationships {
			out = append(out, model.BriefSentence{Text: fmt.Sprintf(p.shared, text.Truncate(name, 80)), Facts: facts[name]})
		}
	}
	return out
}
