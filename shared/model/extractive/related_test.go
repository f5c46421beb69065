package extractive

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/model"
)

func verdictOf(t *testing.T, elder, newer string) model.JudgeReply {
	t.Helper()
	answer, _, err := New().Answer(t.Context(), model.JudgeTask{Elder: model.Statement{Text: elder}, Newer: model.Statement{Text: newer}})
	require.NoError(t, err)
	return answer.(model.JudgeReply)
}

// TestRelatedReachesItsFigures measures who is called related by pairs that were labelled before the rule was written.
func TestRelatedReachesItsFigures(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/related.jsonl")
	require.NoError(t, err)
	defer file.Close()
	right, given, wanted, distincts := 0, 0, 0, 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var p struct {
			Related      bool
			Elder, Newer string
		}
		require.NoError(t, json.Unmarshal(lines.Bytes(), &p))
		for _, order := range [][2]string{{p.Elder, p.Newer}, {p.Newer, p.Elder}} {
			v := verdictOf(t, order[0], order[1])
			if v.Relation != string(model.Distinct) {
				require.False(t, v.Related)
				continue
			}
			if p.Related {
				wanted++
			} else {
				distincts++
			}
			if v.Related {
				given++
				requireOfTheirWords(t, v.Reason, p.Elder+" "+p.Newer)
			}
			if v.Related && p.Related {
				right++
			}
			if v.Related != p.Related {
				t.Logf("related=%v, labelled %v: %s | %s (%s)", v.Related, p.Related, order[0], order[1], v.Reason)
			}
		}
	}
	t.Logf("related: precision %d of %d, recall %d of %d; of different things: %d", right, given, right, wanted, distincts)
	require.Greater(t, distincts, 120)
	require.GreaterOrEqual(t, ratio(right, given), 0.98)
	require.GreaterOrEqual(t, ratio(right, wanted), 0.75)
}

// requireOfTheirWords: a reason names only what stands in the statements.
func requireOfTheirWords(t *testing.T, reason, statements string) {
	t.Helper()
	reason = strings.TrimSuffix(strings.TrimPrefix(reason, "Both tell of "), ".")
	for _, part := range []string{"; the newer adds: ", "; the elder has besides: ", "; one has a detail that the other has not"} {
		reason = strings.ReplaceAll(reason, part, ", ")
	}
	for word := range strings.SplitSeq(reason, ", ") {
		for w := range strings.FieldsSeq(word) {
			require.Contains(t, statements, w)
		}
	}
}

// TestFewOfTheLabelledDistinctAreRelated looks at all labelled pairs that are of different things.
func TestFewOfTheLabelledDistinctAreRelated(t *testing.T) {
	t.Parallel()
	given, all := 0, 0
	for topic, pairs := range topics(t) {
		for _, p := range pairs {
			if p.Relation != model.Distinct || p.Related {
				continue
			}
			all++
			if v := verdictOf(t, p.Elder, p.Newer); v.Related {
				given++
				t.Logf("%s: %s | %s (%s)", topic, p.Elder, p.Newer, v.Reason)
			}
		}
	}
	t.Logf("%d of %d", given, all)
	require.LessOrEqual(t, given, 2)
}

// TestOfADetailOneIsRelated looks at the distinct pairs of the topics that are labelled as related.
func TestOfADetailOneIsRelated(t *testing.T) {
	t.Parallel()
	found, all := 0, 0
	for _, pairs := range topics(t) {
		for _, p := range pairs {
			if !p.Related {
				continue
			}
			for _, order := range [][2]string{{p.Elder, p.Newer}, {p.Newer, p.Elder}} {
				v := verdictOf(t, order[0], order[1])
				if v.Relation == string(model.Duplicate) {
					continue // what leaves a detail out says nothing new
				}
				require.NotEqual(t, string(model.Contradiction), v.Relation, "%s\n%s", order[0], order[1])
				all++
				if v.Related {
					found++
				}
			}
		}
	}
	t.Logf("%d of %d", found, all)
	require.GreaterOrEqual(t, ratio(found, all), 0.75)
}

func TestWhatHappensFromAndToAreNotRelated(t *testing.T) {
	t.Parallel()
	v := verdictOf(t, "The grey cat jumped onto the low garden wall.", "The grey cat jumped off the low garden wall.")
	require.Equal(t, string(model.Distinct), v.Relation)
	require.False(t, v.Related)
}
