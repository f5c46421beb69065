package brief

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/jetstream/worker"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/config/testenv"
	"github.com/factstream/factstream/shared/engine"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/ollama/ollamatest"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/service/servicetest"
	"github.com/factstream/factstream/shared/text"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const (
	question = "How far are solid-state batteries?"
	thread   = "t1"
)

// story is a bus with one thread, whose runs, facts and verdicts a test appends as the other services would.
type story struct {
	*service.Service
	t       testing.TB
	bus     *servicetest.Bus
	briefer *Briefer
	runs    int
}

// begin opens a thread and a briefer that does not run yet. Models that are away are asked again at once.
func begin(t testing.TB, set func(*event.Settings), change ...func(*config.Config)) *story {
	t.Helper()
	bus := servicetest.NewBus(t)
	s := &story{Service: bus.Open("other"), t: t, bus: bus}
	servicetest.Run(t, s.Service)
	settings := servicetest.Settings()
	settings.Budget = notebook.MaxBudget
	if set != nil {
		set(&settings)
	}
	servicetest.Append(t, s.Service, thread, notebook.CreateThread{Question: question, Settings: settings})
	b, err := New(t.Context(), bus.Open("briefer", change...), engine.Options{Backoff: func(int) time.Duration { return time.Millisecond }})
	require.NoError(t, err)
	s.briefer = b
	return s
}

// start lets the briefer work until the test ends.
func (s *story) start() *story {
	s.t.Helper()
	servicetest.Run(s.t, s.briefer.Service, s.briefer.Parts()...)
	return s
}

// fold lets the briefer see the notebook without working on it.
func (s *story) fold() {
	s.t.Helper()
	servicetest.Run(s.t, s.briefer.Service)
}

// withModel is a thread that is worked with the language model of a server, which answers as scripted.
func withModel(t testing.TB) (*story, *ollamatest.Server) {
	t.Helper()
	server := ollamatest.Start(t)
	s := begin(t, func(set *event.Settings) { set.Engine = model.EngineOllama }, func(c *config.Config) {
		c.Ollama.Host, c.Ollama.ChatModel, c.Ollama.EmbedModel = server.URL(), ollamatest.ChatModel, ollamatest.EmbedModel
	})
	return s, server
}

func (s *story) append(cmd notebook.Command) notebook.Appended {
	s.t.Helper()
	return servicetest.Append(s.t, s.Service, thread, cmd)
}

// request asks the thread's question once more: a cycle of one run.
func (s *story) request() string {
	s.t.Helper()
	s.runs++
	run := fmt.Sprintf("run%d", s.runs)
	s.append(notebook.RequestRun{Run: run, Access: servicetest.Access})
	return run
}

// complete gives a run its report.
func (s *story) complete(run string, gaps ...string) {
	s.t.Helper()
	s.append(notebook.StartAttempt{Run: run, Holder: "test", Max: 3})
	s.append(notebook.CompleteRun{Run: run, Completed: event.RunCompleted{Attempt: 1, Report: event.Blob{Text: "A report."}, Gaps: gaps}})
}

func (s *story) distil(run string, n int, facts ...event.Fact) {
	s.t.Helper()
	s.append(notebook.Distil{Run: run, N: n, Facts: facts, Engine: model.EngineExtractive})
}

func (s *story) judge(run string, n int, verdicts ...event.Verdict) notebook.Appended {
	s.t.Helper()
	return s.append(notebook.Judge{Run: run, N: n, Verdicts: verdicts, Engine: model.EngineExtractive})
}

// tell is a whole cycle up to its verdicts, which close it.
func (s *story) tell(gaps []string, verdicts []event.Verdict, facts ...event.Fact) (run string) {
	s.t.Helper()
	run = s.request()
	s.complete(run, gaps...)
	s.distil(run, 0, facts...)
	s.judge(run, 0, verdicts...)
	return run
}

// fact is a fact from a page of its own.
func fact(statement string, tags ...string) event.Fact {
	print := text.Fingerprint(statement)
	url := "https://" + print[:6] + ".example/page"
	return event.Fact{
		ID: notebook.FactID(thread, print), Fingerprint: print, Statement: statement, Confidence: 0.8, Tags: tags,
		Source: &event.Source{ID: notebook.SourceID(thread, url), URL: url, Canonical: url, Site: print[:6] + ".example", Title: "Page of " + print[:6]},
	}
}

// contradicts is the verdict that two facts cannot both be true.
func contradicts(elder, newer event.Fact) event.Verdict {
	return event.Verdict{
		Elder: elder.ID, ElderFingerprint: elder.Fingerprint, Newer: newer.ID, NewerFingerprint: newer.Fingerprint,
		Relation: event.Contradiction, Reason: "The figures differ.", Similarity: 0.9,
	}
}

// settled waits until the newest closing of a cycle is settled and it is closing n.
func (s *story) settled(cycle, n int) {
	s.t.Helper()
	servicetest.Until(s.t, s.Service, thread, func(t *notebook.Thread) bool {
		c := t.CycleOf(cycle)
		return c != nil && c.Newest() != nil && c.Newest().N == n && c.Newest().Settled
	})
}

// events gives the thread's events from the stream, all or those of some kinds.
func (s *story) events(kinds ...string) []event.Event {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), servicetest.Wait)
	defer cancel()
	stream, err := s.JS.Stream(ctx, topology.Notebook)
	require.NoError(s.t, err)
	var events []event.Event
	for seq := uint64(1); seq <= stream.CachedInfo().State.LastSeq; seq++ {
		m, err := stream.GetMsg(ctx, seq)
		require.NoError(s.t, err)
		e, err := event.Parse(m.Subject, m.Data)
		require.NoError(s.t, err)
		e.Seq = seq
		if len(kinds) == 0 || contains(kinds, e.Kind()) {
			events = append(events, e)
		}
	}
	return events
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// one gives the data of the only event of its kind.
func one[D event.Data](s *story) D {
	s.t.Helper()
	var zero D
	events := s.events(zero.Kind())
	require.Len(s.t, events, 1, zero.Kind())
	return events[0].Data.(D)
}

// last gives the data of the newest event of its kind.
func last[D event.Data](s *story) D {
	s.t.Helper()
	var zero D
	events := s.events(zero.Kind())
	require.NotEmpty(s.t, events, zero.Kind())
	return events[len(events)-1].Data.(D)
}

func kinds(events []event.Event) []string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = e.Kind()
	}
	return out
}

// message is the delivery of an event.
func message(t testing.TB, e event.Event) worker.Message {
	t.Helper()
	body, err := event.Marshal(e)
	require.NoError(t, err)
	return worker.Message{Subject: e.Subject(), Data: body, Seq: e.Seq, NumDelivered: 1, Durable: topology.Brief}
}

// stepOf tells which task a model's request is.
func stepOf(call ollamatest.ChatCall) string {
	for step, mark := range map[string]string{
		event.StageQuestions: "propose the next questions", event.StageBrief: "write a brief", event.StageCoverage: "put each numbered fact under",
	} {
		if strings.Contains(call.Messages[0].Content, mark) {
			return step
		}
	}
	return ""
}

// prompt is the material of a request.
func prompt(call ollamatest.ChatCall) string { return call.Messages[len(call.Messages)-1].Content }

// answering answers each step with a value as JSON. A step without one gets the smallest value of its form.
func answering(replies map[string]any) func(ollamatest.ChatCall) ollamatest.Answer {
	return func(call ollamatest.ChatCall) ollamatest.Answer {
		reply, ok := replies[stepOf(call)]
		if !ok {
			return ollamatest.Answer{Content: ollamatest.Smallest(call.Format)}
		}
		if answer, ok := reply.(ollamatest.Answer); ok {
			return answer
		}
		body, err := json.Marshal(reply)
		if err != nil {
			panic(err)
		}
		return ollamatest.Answer{Content: string(body)}
	}
}
