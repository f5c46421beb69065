package api

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

// A thread of an earlier version may be Brave's, whose runs reserve no credits.
func TestWhereAnswersAreCountedTheirLimitIsWhatRefusesARun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit *int
		code  string
	}{
		"no limit":     {nil, ""},
		"one is left":  {new(1), ""},
		"none is left": {new(0), notebook.ReasonAnswerBudget},
	} {
		thread := notebook.NewThread("t")
		thread.Evolve(event.Event{ID: "e", Time: time.Unix(0, 0), Thread: "t", Entity: "0", Seq: 1, Data: event.ThreadCreated{
			Question: "Why?", Title: "Why?", Settings: event.Settings{Provider: event.Brave, Batch: 1, Engine: "auto", AnswerBudget: c.limit},
		}})
		code := ""
		if r := runRefused(thread, event.Fast); r != nil {
			code = r.Code
		}
		require.Equal(t, c.code, code, name)
	}
}
