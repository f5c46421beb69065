package notebook

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/event"
)

// What putting a message back leads to, for each worker and every state that the message may find.
func TestPuttingBackAsksForWhatTheStateLacks(t *testing.T) {
	t.Parallel()
	run := func(s *story) string { return s.last().ID }
	cycle := func(*story) string { return "1" }
	nothing := func(*story) string { return "poisoned" }
	requested := func(s *story) { require.NoError(t, s.request("")) }
	completed := func(s *story) { requested(s); s.complete() }
	distilled := func(s *story) { completed(s); s.distil("A.") }
	judged := func(s *story) { distilled(s); s.judge() }
	done := func(s *story) { judged(s); s.close("And how?"); s.auto() }
	failed := func(s *story) {
		requested(s)
		s.must(FailRun{Run: s.last().ID, Code: event.CodeMalformed, Detail: "It could not be read."})
		s.settle()
	}
	for name, c := range map[string]struct {
		story   func(*story)
		stage   string
		entity  func(*story) string
		want    string // the stage that is retried; "run requested", or the code of the refusal
		settles bool   // the worker then finds a closing whose steps are these
		steps   []string
	}{
		"a request of a run that waits":              {requested, event.StageRun, run, event.StageRun, false, nil},
		"a request of a run at work":                 {func(s *story) { requested(s); s.begin() }, event.StageRun, run, event.StageRun, false, nil},
		"a request of a run that failed":             {failed, event.StageRun, run, "run requested", false, nil},
		"a request of a run that has completed":      {done, event.StageRun, run, "run-completed", false, nil},
		"a request that never came to be a run":      {requested, event.StageRun, nothing, "nothing-to-put-back", false, nil},
		"a retry of a cycle, for the runs":           {done, event.StageRun, cycle, "nothing-to-put-back", false, nil},
		"a completion that was not read":             {func(s *story) { requested(s); s.begin() }, event.StageDistill, run, event.StageRun, false, nil},
		"a completion that was":                      {completed, event.StageDistill, run, event.StageDistill, false, nil},
		"a completion of a run whose facts failed":   {func(s *story) { completed(s); s.fail(event.StageDistill); s.settle() }, event.StageDistill, run, event.StageDistill, false, nil},
		"a completion of what is done":               {done, event.StageDistill, run, event.StageDistill, false, nil},
		"a completion of a run that failed":          {failed, event.StageDistill, run, "no-report", false, nil},
		"a completion of nothing":                    {done, event.StageDistill, nothing, "nothing-to-put-back", false, nil},
		"a retry of a cycle, for the facts":          {done, event.StageDistill, cycle, "nothing-to-put-back", false, nil},
		"facts that were not read":                   {completed, event.StageJudge, run, event.StageDistill, false, nil},
		"facts that were":                            {distilled, event.StageJudge, run, event.StageJudge, false, nil},
		"facts of what is done":                      {done, event.StageJudge, run, event.StageJudge, false, nil},
		"verdicts that were not read":                {distilled, event.StageClose, run, event.StageJudge, false, nil},
		"verdicts that closed the cycle":             {judged, event.StageClose, run, event.StageClose, true, []string{event.StageQuestions, event.StageBrief, event.StageCoverage}},
		"a failure that was not read":                {requested, event.StageClose, run, event.StageRun, false, nil},
		"a failure that closed the cycle":            {failed, event.StageClose, run, event.StageBrief, true, []string{event.StageBrief}},
		"the end of what is done":                    {done, event.StageClose, cycle, event.StageBrief, true, []string{event.StageBrief}},
		"the end of a cycle that failed at its end":  {func(s *story) { judged(s); s.fail(event.StageClose) }, event.StageClose, cycle, event.StageClose, true, []string{event.StageQuestions, event.StageBrief, event.StageCoverage}},
		"the end of a cycle whose run is at work":    {requested, event.StageClose, cycle, "cycle-active", false, nil},
		"the end of nothing":                         {done, event.StageClose, nothing, "nothing-to-put-back", false, nil},
		"a settled cycle that autopilot did not see": {func(s *story) { s.start(); s.complete(); s.distil("A."); s.judge(); s.close("And how?") }, event.StageAutopilot, cycle, event.StageAutopilot, false, nil},
		"the same, asked for by a run's retry":       {func(s *story) { s.start(); s.complete(); s.distil("A."); s.judge(); s.close("And how?") }, event.StageAutopilot, run, event.StageAutopilot, false, nil},
		"a cycle whose settling was not read":        {func(s *story) { s.start(); s.complete(); s.distil("A."); s.judge() }, event.StageAutopilot, cycle, event.StageClose, false, nil},
		"a settled cycle of a thread that waits":     {done, event.StageAutopilot, cycle, "nothing-to-put-back", false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := tell(t)
			c.story(s)
			before := s.thread.Ledger.Held()
			n := len(s.log)
			err := s.do(PutBack{Stage: c.stage, Entity: c.entity(s), Run: "again", Access: s.access})
			var refusal *Refusal
			if errors.As(err, &refusal) {
				require.Equal(t, c.want, refusal.Code, refusal.Text)
				require.Len(t, s.log, n)
				return
			}
			require.NoError(t, err)
			require.Len(t, s.log, n+1)
			switch d := s.log[n].Data.(type) {
			case event.RunRequested:
				require.Equal(t, c.want, "run requested")
				require.Equal(t, "again", s.log[n].Entity)
				require.Equal(t, "Why?", d.Text)
				require.Equal(t, before+250, s.thread.Ledger.Held())
				require.NoError(t, s.do(PutBack{Stage: c.stage, Entity: s.thread.RunIDs[0], Run: "again", Access: s.access}))
				require.Equal(t, before+250, s.thread.Ledger.Held(), "put back twice it is reserved once")
			case event.StageRetried:
				require.Equal(t, c.want, d.Stage)
				require.Equal(t, ByPerson, d.By)
				require.Equal(t, before, s.thread.Ledger.Held(), "nothing more is reserved")
			default:
				t.Fatalf("%T", d)
			}
			if c.settles {
				require.Equal(t, c.steps, s.thread.CycleOf(1).Newest().Remaining())
			}
		})
	}
}

func TestPuttingBackARequestThatNobodyCouldRead(t *testing.T) {
	t.Parallel()
	s := tell(t)
	back := PutBack{Stage: event.StageRun, Entity: "poisoned", Run: "again", Question: "And what of cost?", Mode: event.Balanced, Access: s.access}
	s.must(back)
	require.Equal(t, "And what of cost?", s.thread.Runs["again"].Requested.Text)
	require.Equal(t, 350, s.thread.Ledger.Held())
	s.must(back)
	require.Equal(t, 350, s.thread.Ledger.Held(), "once, however often it is put back")

	poor := tell(t, func(s *event.Settings) { s.Budget = 100 })
	var refusal *Refusal
	require.ErrorAs(t, poor.do(back), &refusal)
	require.Equal(t, 402, refusal.Status)
	require.ErrorAs(t, func() error { _, err := Decide(NewThread("nobody"), back, s.now); return err }(), &refusal)
	require.Equal(t, 404, refusal.Status)
}
