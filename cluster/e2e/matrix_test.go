package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/cluster/chaos"
	"github.com/factstream/factstream/cluster/up"
	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/fault"
	"github.com/factstream/factstream/shared/model/ollama/ollamatest"
)

// field is a notebook each process of which can be ended by itself, buying from a stand-in.
type field struct {
	*api
	*chaos.Field
	t        *testing.T
	dir      string
	provider *standin.Server
	rounds   int
}

// open starts a field until the test ends. env wins over the defaults.
func open(t *testing.T, env ...string) *field {
	t.Helper()
	return openWith(t, chaos.Layout{Env: env})
}

// openWith starts a field of another layout.
func openWith(t *testing.T, layout chaos.Layout) *field {
	t.Helper()
	clusters <- struct{}{}
	t.Cleanup(func() { <-clusters })
	f := &field{t: t, dir: t.TempDir(), provider: standin.Start(t, standin.Options{Key: key})}
	layout.Bin, layout.Dir = bin, f.dir
	layout.Env = append([]string{"TABSTACK_BASE_URL=" + f.provider.URL(), "TABSTACK_API_KEY=" + key, "OFFLINE=1",
		hurried[1], hurried[2], "RETRY_DELAYS=200ms,200ms,200ms,200ms"}, layout.Env...)
	var err error
	f.Field, err = chaos.Open(t.Context(), layout)
	t.Cleanup(func() {
		require.NoError(t, f.Close())
		if t.Failed() {
			f.dump()
		}
	})
	require.NoError(t, err)
	f.api = &api{t: t, url: f.URL}
	return f
}

// dump shows the end of every log, for a test that failed.
func (f *field) dump() {
	logs, _ := filepath.Glob(filepath.Join(f.LogDir(), "*.log"))
	for _, path := range logs {
		text, _ := os.ReadFile(path)
		if keep := 4000; len(text) > keep {
			text = text[len(text)-keep:]
		}
		f.t.Logf("--- %s\n%s", filepath.Base(path), text)
	}
}

// insist sends a write again, under its key, until somebody answers it; a gateway that is killed answers nothing.
func (f *field) insist(status int, method, path, key string, body any) []byte {
	f.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		got, text, err := f.try(method, base+path, body, "Idempotency-Key", key)
		if err == nil && got == status {
			return text
		}
		require.True(f.t, err != nil || got >= 500, "%s %s: %d %s", method, path, got, text)
		require.True(f.t, time.Now().Before(deadline), "%s %s: %d %s %v", method, path, got, text, err)
		<-time.After(50 * time.Millisecond)
	}
}

func decode[T any](t *testing.T, text []byte) (v T) {
	t.Helper()
	require.NoError(t, json.Unmarshal(text, &v), "%s", text)
	return v
}

// story is what is done with a new thread; it is done when the thread has settled.
type story func(f *field, key string) (thread string)

// bought lets autopilot ask what a person put in line until the budget is used, then gives more and asks once by hand. The first call
// is refused.
func bought(f *field, key string) string {
	th := decode[thread](f.t, f.insist(http.StatusCreated, http.MethodPost, "/threads", key+"-thread",
		map[string]any{"question": "How close are solid-state batteries to mass production?", "budget": 500, "auto": true}))
	f.insist(http.StatusCreated, http.MethodPost, "/threads/"+th.ID+"/questions", key+"-question", map[string]any{"text": "Who makes them?"})
	f.insist(http.StatusOK, http.MethodPost, "/threads/"+th.ID+"/start", key+"-start", map[string]any{})
	f.settled(th.ID)
	f.insist(http.StatusOK, http.MethodPatch, "/threads/"+th.ID, key+"-budget", map[string]any{"budget": 850})
	f.insist(http.StatusAccepted, http.MethodPost, "/threads/"+th.ID+"/runs", key+"-run", map[string]any{"mode": "balanced"})
	f.settled(th.ID)
	return th.ID
}

// tell tells a story with fault points armed, each of which has to strike, and gives what the notebook knows afterwards; the thread
// is deleted then, so that the next story begins in an empty notebook. No answer may be bought twice.
func (f *field) tell(s story, armed map[string][]string) string {
	f.t.Helper()
	f.rounds++
	struck := filepath.Join(f.dir, fmt.Sprintf("struck-%d", f.rounds))
	var points, services []string
	for service, faults := range armed {
		services = append(services, service)
		f.Arm(service, strings.Join(faults, ","), struck)
		for _, fault := range faults {
			name, _, _ := strings.Cut(fault, "=")
			points = append(points, name+" kill")
		}
	}
	f.provider.Forget()
	require.NoError(f.t, f.provider.Set(standin.Answer{Piece: 2048, Delay: 5 * time.Millisecond}, standin.Answer{Status: http.StatusServiceUnavailable, Body: "{}"}))
	require.NoError(f.t, f.Restart(f.t.Context(), services...))

	id := s(f, fmt.Sprintf("round-%d", f.rounds))
	knows := f.knows(id)
	whole := 0
	for _, c := range f.provider.Calls() {
		if c.Outcome == standin.Whole && c.Status == http.StatusOK {
			whole++
		}
	}
	completed := 0
	for _, r := range all[run](f.api, "/threads/"+id+"/runs") {
		if r.Status == "completed" {
			completed++
		}
	}
	require.Equal(f.t, completed, whole, "each answer is bought once: %v", points)
	require.Equal(f.t, 1, f.provider.Stats().MaxInFlight)

	f.forget(id)
	for deadline := time.Now().Add(patience); len(lines(struck)) < len(points) && time.Now().Before(deadline); {
		<-time.After(20 * time.Millisecond)
	}
	require.ElementsMatch(f.t, points, lines(struck), "each point struck once")
	for service := range armed {
		f.Arm(service, "", "")
	}
	return knows
}

// forget deletes a thread. The answer may be lost with the gateway; then the next one says that the thread is gone.
func (f *field) forget(id string) {
	f.t.Helper()
	eventually(f.t, "the thread is deleted", func() bool {
		status, _, err := f.try(http.MethodDelete, base+"/threads/"+id, nil)
		return err == nil && (status == http.StatusOK || status == http.StatusGone)
	})
}

func lines(path string) []string {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// knows is everything that the API tells of a thread, as text: ids replaced by what they stand for, times left out.
func (f *field) knows(id string) string {
	f.t.Helper()
	names := map[string]string{id: "the thread"}
	var text strings.Builder
	for i, r := range all[run](f.api, "/threads/"+id+"/runs") {
		names[r.ID] = fmt.Sprintf("run %d", i)
	}
	for _, fa := range all[fact](f.api, "/threads/"+id+"/facts?include=all&limit=500") {
		names[fa.ID] = "fact: " + fa.Statement
	}
	for _, s := range all[source](f.api, "/threads/"+id+"/sources?limit=500") {
		names[s.ID] = "source: " + s.URL
	}
	for _, q := range all[question](f.api, "/threads/"+id+"/questions") {
		names[q.ID] = "question: " + q.Text
	}
	for _, c := range all[contradiction](f.api, "/threads/"+id+"/contradictions") {
		names[c.ID] = "contradiction: " + c.A.Statement + " / " + c.B.Statement
	}
	for _, topic := range call[struct{ Topics []struct{ ID, Name string } }](f.api, http.StatusOK, http.MethodGet, base+"/threads/"+id+"/coverage", nil).Topics {
		names[topic.ID] = "topic: " + topic.Name
	}
	var pairs []string
	for from, to := range names {
		quoted, err := json.Marshal(to)
		require.NoError(f.t, err)
		pairs = append(pairs, from, strings.Trim(string(quoted), `"`))
	}
	known := strings.NewReplacer(pairs...)
	for _, part := range []string{"", "/runs", "/facts?include=all&limit=500", "/sources?limit=500", "/questions", "/contradictions", "/brief", "/coverage"} {
		status, answer, err := f.try(http.MethodGet, base+"/threads/"+id+part, nil)
		require.NoError(f.t, err)
		require.Contains(f.t, []int{http.StatusOK, http.StatusNotFound}, status, "%s", answer)
		var value any
		require.NoError(f.t, json.Unmarshal([]byte(known.Replace(string(answer))), &value))
		if part == "" {
			delete(value.(map[string]any), "position")
		}
		pretty, err := json.MarshalIndent(timeless(value), "", " ")
		require.NoError(f.t, err)
		fmt.Fprintf(&text, "%s %d %s\n", part, status, pretty)
	}
	return text.String()
}

// timeless leaves out what a kill may change: times, how long it took, and how often it was tried.
func timeless(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = timeless(v[i])
		}
	case map[string]any:
		maps.DeleteFunc(v, func(name string, _ any) bool {
			return strings.HasSuffix(name, "_at") && name != "published_at" || slices.Contains([]string{"since", "seconds", "attempts", "phase", "waiting"}, name)
		})
		if _, stage := v["state"]; stage {
			delete(v, "text")
		}
		for name := range v {
			v[name] = timeless(v[name])
		}
	}
	return value
}

// matrix arms every point of a list of services, one of each service in a round, and gives the rounds.
func matrix(t *testing.T, without ...string) (rounds []map[string][]string) {
	t.Helper()
	points, err := up.FaultPoints(bin)
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(points), 20)
	next := map[string]int{}
	for _, p := range points {
		if slices.Contains(without, p.Name) {
			continue
		}
		service, _, _ := strings.Cut(p.Name, ".")
		if next[service] == len(rounds) {
			rounds = append(rounds, map[string][]string{})
		}
		rounds[next[service]][service] = append(rounds[next[service]][service], p.Name+"=kill")
		next[service]++
	}
	return rounds
}

func TestEveryFaultPointIsListedWithWhatItMeans(t *testing.T) {
	t.Parallel()
	text, err := exec.Command(filepath.Join(bin, "factstream"), "faults").Output()
	require.NoError(t, err)
	points, err := up.FaultPoints(bin)
	require.NoError(t, err)
	for _, p := range points {
		what := strings.Join(strings.Fields(regexp.QuoteMeta(p.What)), `\s+`) // wrapped, under a hanging indent
		require.Regexp(t, `(?m)^`+regexp.QuoteMeta(p.Name)+` +`+what+`$`, string(text))
	}
	for line := range strings.Lines(string(text)) {
		require.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 80, line)
	}
	for _, service := range []string{"researcher", "distiller", "judge", "briefer", "gateway"} {
		require.True(t, slices.ContainsFunc(points, func(p fault.Point) bool { return strings.HasPrefix(p.Name, service+".") }), service)
	}
}

// apart are the points that no story of all goes well passes, or only one with a language model.
var apart = []string{"researcher.lost", "distiller.kept", "judge.embedded", "judge.kept", "distiller.given-up", "judge.given-up", "judge.chosen"}

func TestAfterAKillAtAnyPointTheNotebookIsThatOfAnUndisturbedRun(t *testing.T) {
	t.Parallel()
	rounds := matrix(t, apart...)
	for half := range 2 {
		t.Run(fmt.Sprint("part ", half+1), func(t *testing.T) {
			t.Parallel()
			f := open(t, "MODEL_ENGINE=auto", "OLLAMA_HOST=http://127.0.0.1:1")
			calm := f.tell(bought, nil)
			require.Contains(t, calm, `"spent": 850`)
			for i, armed := range rounds {
				if i%2 == half {
					began := time.Now()
					require.Equal(t, calm, f.tell(bought, armed), "%v", armed)
					t.Logf("%.1f s: %v", time.Since(began).Seconds(), armed)
				}
			}
		})
	}
}

// mood is what a stand-in for a language model does not want to answer properly: "", "distill" or "judge".
type mood struct{ atomic.Value }

func (m *mood) answer(call ollamatest.ChatCall) ollamatest.Answer {
	schema := string(call.Format)
	asked := "rest"
	switch {
	case strings.Contains(schema, `"statement"`):
		asked = "distill"
	case strings.Contains(schema, `"relation"`):
		asked = "judge"
	}
	switch {
	case asked == m.Load():
		return ollamatest.Answer{Content: "I would rather not."}
	case asked == "distill":
		return ollamatest.Answer{Content: `{"facts": [
			{"statement": "The first plant makes 100 cells a year.", "confidence": 0.9, "tags": [], "sentences": [1], "page": null},
			{"statement": "The first plant makes 200 cells a year.", "confidence": 0.8, "tags": [], "sentences": [2], "page": null}]}`}
	}
	return ollamatest.Answer{Content: ollamatest.Smallest(call.Format)}
}

// modelled asks once, in a thread whose engine is a language model.
func modelled(f *field, key string) string {
	th := decode[thread](f.t, f.insist(http.StatusCreated, http.MethodPost, "/threads", key+"-thread", map[string]any{"question": "How many cells?", "auto": false}))
	f.insist(http.StatusAccepted, http.MethodPost, "/threads/"+th.ID+"/runs", key+"-run", map[string]any{})
	f.settled(th.ID)
	return th.ID
}

func TestAModelIsAskedAgainForWhatWasNotKeptAndForNothingElse(t *testing.T) {
	t.Parallel()
	server, mood := ollamatest.Start(t), &mood{}
	server.Respond(mood.answer)
	f := open(t, "MODEL_ENGINE=auto", "OLLAMA_HOST="+server.URL(), "OLLAMA_CHAT_MODEL="+ollamatest.ChatModel, "OLLAMA_EMBED_MODEL="+ollamatest.EmbedModel)
	asked := func(armed map[string][]string) (knows string, chats int) {
		vectors, err := f.JS.Stream(t.Context(), "KV_"+topology.BucketVectors)
		require.NoError(t, err)
		require.NoError(t, vectors.Purge(t.Context())) // else nothing is embedded from the second round on
		before := len(server.Chats())
		knows = f.tell(modelled, armed)
		return knows, len(server.Chats()) - before
	}
	calm, once := asked(nil)
	require.Contains(t, calm, `"engine": "ollama"`)
	require.Contains(t, calm, "200 cells")
	for _, round := range []struct {
		place string
		again int // how often the model may be asked again
	}{{"embedded", 0}, {"replied", 2}, {"kept", 0}, {"made", 0}} {
		began := time.Now()
		armed := map[string][]string{"judge": {"judge." + round.place + "=kill"}}
		if round.place != "embedded" {
			armed["distiller"] = []string{"distiller." + round.place + "=kill"}
		}
		knows, chats := asked(armed)
		require.Equal(t, calm, knows, round.place)
		require.LessOrEqual(t, chats-once, round.again, "%s: once at most for each service that was killed before the reply was kept", round.place)
		t.Logf("%.1f s: killed at %s, the model is asked %d times, undisturbed %d", time.Since(began).Seconds(), round.place, chats, once)
	}

	// What the model refuses is given up, whether killed at that or not.
	refused := func(f *field, key string) string {
		mood.Store("judge")
		id := modelled(f, key)
		runs := all[run](f.api, "/threads/"+id+"/runs")
		require.Len(t, runs, 1)
		mood.Store("")
		f.insist(http.StatusOK, http.MethodPatch, "/threads/"+id, key+"-engine", map[string]any{"engine": "auto"})
		f.insist(http.StatusAccepted, http.MethodPost, "/runs/"+runs[0].ID+"/stages/judge/retry", key+"-judge", map[string]any{})
		f.settled(id)
		mood.Store("distill")
		f.insist(http.StatusAccepted, http.MethodPost, "/runs/"+runs[0].ID+"/stages/distill/retry", key+"-distill", map[string]any{})
		f.settled(id)
		mood.Store("")
		return id
	}
	calm = f.tell(refused, nil)
	require.Contains(t, calm, `"knowledge_error": {`)
	require.Equal(t, calm, f.tell(refused, map[string][]string{"distiller": {"distiller.given-up=kill"}, "judge": {"judge.chosen=kill", "judge.given-up=kill"}}))
}

func TestAStepWhoseMessageIsLostIsDoneAllTheSame(t *testing.T) {
	t.Parallel()
	f := open(t, "MODEL_ENGINE=extractive")
	calm := f.tell(modelled, nil)
	stolen := func(f *field, key string) string {
		require.True(t, f.Stop("distiller"))
		th := decode[thread](t, f.insist(http.StatusCreated, http.MethodPost, "/threads", key+"-thread", map[string]any{"question": "How many cells?", "auto": false}))
		f.insist(http.StatusAccepted, http.MethodPost, "/threads/"+th.ID+"/runs", key+"-run", map[string]any{})
		eventually(t, "the report is there, and who should distil it has its message", func() bool {
			consumer, err := f.JS.Consumer(t.Context(), topology.Notebook, topology.Distil)
			require.NoError(t, err)
			now := consumer.CachedInfo()
			if all[run](f.api, "/threads/"+th.ID+"/runs")[0].Status != "completed" || now.NumPending > 0 || now.NumAckPending == 0 {
				return false
			}
			// Acknowledged by somebody who did nothing about it.
			ack := fmt.Sprintf("$JS.ACK.%s.%s.1.%d.%d.%d.0", topology.Notebook, topology.Distil, now.Delivered.Stream, now.Delivered.Consumer, time.Now().UnixNano())
			_, err = f.NC.Request(ack, []byte("+ACK"), patience)
			require.NoError(t, err)
			return true
		})
		f.Kill("distiller")
		f.settled(th.ID)
		return th.ID
	}
	require.Equal(t, calm, f.tell(stolen, map[string][]string{"researcher": {"researcher.lost=kill"}}))
}
