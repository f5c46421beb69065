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
	disputed := map[int]bool{}
	for _, f := range task.Facts {
		statements[f.N] = f.Statement
		disputed[f.N] = f.Disputed
	}
	for _, d := range task.Disputes {
		disputed[d.A], disputed[d.B] = true, true
	}
	settled := undisputed(task.Facts, disputed)
	p := phrasesFor(task.Question)
	reply.Findings = findings(settled)
	for _, d := range task.Disputes {
		reply.Disputed = append(reply.Disputed, model.BriefDisputeSentence{Dispute: d.N, Text: fmt.Sprintf(p.disputed, quoted(statements[d.A], maxSide), quoted(statements[d.B], maxSide))})
	}
	if missing := uncovered(task); len(missing) > 0 {
		reply.Gaps = append(reply.Gaps, model.BriefSentence{Text: fmt.Sprintf(p.uncovered, strings.Join(missing, ", ")), Facts: []int{}})
	}
	reply.Relationships = relationships(settled, p)
	return reply
}

// undisputed are the facts that nothing is said against. A sentence that a fact leans on and that is the claim of a disputed one is left
// out; a fact that cannot be read without it is left out too, since it would state as settled what is not.
func undisputed(facts []model.BriefFact, disputed map[int]bool) []model.BriefFact {
	var against []string
	for _, f := range facts {
		if sentences := text.Sentences(f.Statement); disputed[f.N] && len(sentences) > 0 {
			against = append(against, sentences[len(sentences)-1].Text)
		}
	}
	inDispute := func(s text.Sentence) bool {
		return slices.ContainsFunc(against, func(claim string) bool { return strings.Contains(claim, s.Text) || strings.Contains(s.Text, claim) })
	}
	var settled []model.BriefFact
	for _, f := range facts {
		if disputed[f.N] {
			continue
		}
		sentences := text.Sentences(f.Statement)
		keep := sentences
		for i, s := range sentences {
			if inDispute(s) {
				keep = sentences[i+1:]
			}
		}
		if len(keep) < len(sentences) {
			if len(keep) == 0 || leaning(keep[0].Text, read(keep[0].Text)) == before {
				continue
			}
			f.Statement = f.Statement[keep[0].Start:]
		}
		settled = append(settled, f)
	}
	return settled
}

func findings(settled []model.BriefFact) []model.BriefSentence {
	out := []model.BriefSentence{}
next:
	for _, f := range settled {
		for i := range out {
			if same(out[i].Text, f.Statement) {
				out[i].Facts = append(out[i].Facts, f.N)
				continue next
			}
		}
		if len(out) < maxFindings {
			out = append(out, model.BriefSentence{Text: f.Statement, Facts: []int{f.N}})
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
