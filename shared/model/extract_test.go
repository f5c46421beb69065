package model

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExtractFindsTheAnswer(t *testing.T) {
	t.Parallel()
	const good = `{"reason":"same figures","relation":"duplicate"}`
	for name, text := range map[string]string{
		"alone":                       good,
		"white space and BOM":         "\uFEFF \n" + good + "\n ",
		"fenced":                      "```json\n" + good + "\n```",
		"fenced with prose":           "Here is the answer:\n```\n" + good + "\n```\nI hope it helps {really}.",
		"think block first":           "<think>Is it {\"reason\":\"no\",\"relation\":\"distinct\"}? No.</think>\n" + good,
		"thinking block first":        "<thinking>{}</thinking>" + good,
		"closing tag alone":           "They differ {maybe}... {\"reason\":\"x\",\"relation\":\"distinct\"}\n</think>\n" + good,
		"two objects":                 good + "\n" + `{"reason":"other","relation":"distinct"}`,
		"first object does not fit":   `{"relation":"maybe","reason":""} ` + good,
		"first object lacks a field":  `{"relation":"duplicate"}` + good,
		"brace that opens nothing":    "{ not json " + good,
		"array around it":             "[" + good + "]",
		"a further field":             `{"note":1,"reason":"same figures","relation":"duplicate"}`,
		"a field twice, the last one": `{"reason":"a","reason":"same figures","relation":"duplicate"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object, err := Extract(text, judgeSchema)
			require.NoError(t, err)
			var reply JudgeReply
			require.NoError(t, json.Unmarshal(object, &reply))
			require.Equal(t, JudgeReply{Reason: "same figures", Relation: "duplicate"}, reply)
		})
	}
}

func TestExtractLeavesAClosingTagInsideTheAnswerAlone(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"reason":"the tag </think> is {named} in both","relation":"duplicate"}`,
		"```json\n" + `{"reason":"the tag </think> is {named} in both","relation":"duplicate"}` + "\n```",
	} {
		object, err := Extract(text, judgeSchema)
		require.NoError(t, err)
		require.Contains(t, string(object), "the tag")
	}
}

func TestExtractRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		want error
		says string
	}{
		"nothing":             {"", ErrEmpty, ""},
		"white space":         {" \n\t", ErrEmpty, ""},
		"prose":               {"I cannot do that.", ErrSchema, "no JSON object"},
		"cut":                 {`{"reason":"the same`, ErrSchema, "no JSON object"},
		"a thought alone":     {`<think>{"reason":"a","relation":"duplicate"}`, ErrSchema, "no JSON object"},
		"a thought and prose": {`<think>{"reason":"a","relation":"duplicate"}</think> Done.`, ErrSchema, "no JSON object"},
		"value not allowed":   {`{"reason":"a","relation":"same"}`, ErrSchema, "relation"},
		"a missing field":     {`{"relation":"distinct"}`, ErrSchema, "reason"},
		"wrong type":          {`{"reason":7,"relation":"distinct"}`, ErrSchema, "reason"},
		"list":                {`[1,2]`, ErrSchema, "no JSON object"},
		"too long":            {strings.Repeat("x", maxReply+1), ErrSchema, "bytes long"},
		"nothing but braces":  {strings.Repeat(`{"a":`, 100_000), ErrSchema, "no JSON object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Extract(c.text, judgeSchema)
			require.ErrorIs(t, err, c.want)
			require.Contains(t, err.Error(), c.says)
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestExtractSaysThatASchemaIsBroken(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{`{`, `{"type":7}`} {
		_, err := Extract(`{}`, json.RawMessage(schema))
		require.Error(t, err)
		require.Empty(t, Class(err), "no failure of the model")
	}
}

func FuzzExtract(f *testing.F) {
	for _, s := range []string{`{"reason":"a","relation":"distinct"}`, "<think>{", "```json\n{}\n```", `{"a":{"b":`, "</think>{"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		object, err := Extract(s, judgeSchema)
		if err != nil {
			require.True(t, strings.TrimSpace(s) == "" || Class(err) == ClassBad)
			return
		}
		var reply JudgeReply
		require.NoError(t, json.Unmarshal(object, &reply))
		_, err = JudgeTask{}.Check(reply)
		require.NoError(t, err, "what has the form can be checked")
	})
}
