package ollama_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/modeltest"
	"github.com/factstream/factstream/shared/model/ollama"
	"github.com/factstream/factstream/shared/model/ollama/ollamatest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open starts a server and an engine on it; change, if not nil, changes the configuration.
func open(t *testing.T, change func(*ollama.Config)) (*ollamatest.Server, *ollama.Engine) {
	t.Helper()
	server := ollamatest.Start(t)
	config := ollama.Config{Host: server.URL(), ChatModel: "tiny-chat", EmbedModel: "nomic-embed-text"}
	if change != nil {
		change(&config)
	}
	engine, err := ollama.New(config)
	require.NoError(t, err)
	t.Cleanup(engine.Close)
	return server, engine
}

func TestConformance(t *testing.T) {
	t.Parallel()
	modeltest.Run(t, func(t *testing.T) model.Model {
		_, engine := open(t, nil)
		return engine
	})
}

var judging = model.JudgeTask{Elder: model.Statement{Text: "The bridge was opened in 1925."}, Newer: model.Statement{Text: "The bridge was opened in 1926."}}

const verdict = `{"reason":"Two years for one opening.","relation":"contradiction"}`

func TestTheRequestIsWhatOllamaNeedsToBeHonest(t *testing.T) {
	t.Parallel()
	server, engine := open(t, func(c *ollama.Config) { c.NumCtx = 4096; c.Threads = 1 })
	server.Script(ollamatest.Answer{Content: verdict})
	req := judging.Request()
	reply, err := engine.Generate(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, verdict, reply.Text)
	require.Equal(t, "sha-tiny-chat:latest", reply.Digest)
	require.Equal(t, "tiny-chat", reply.Model)
	require.Positive(t, reply.PromptTokens)
	require.Positive(t, reply.ReplyTokens)

	call := server.Chats()[0]
	require.Equal(t, "tiny-chat", call.Model, "the tag as configured")
	for field, want := range map[string]string{"truncate": "false", "shift": "false", "think": "false", "format": string(req.Schema)} {
		require.Equal(t, want, string(call.Raw[field]), field)
	}
	require.Equal(t, map[string]any{"num_ctx": 4096.0, "num_predict": float64(req.MaxTokens), "temperature": 0.0, "seed": 1.0, "num_thread": 1.0}, call.Options)
	require.Equal(t, 10*time.Minute, call.KeepAlive.Duration)
	require.Len(t, call.Messages, 2)
	require.Equal(t, req.System, call.Messages[0].Content)
	require.Equal(t, req.Prompt, call.Messages[1].Content)
}

func TestChatFailures(t *testing.T) {
	t.Parallel()
	page := "<html><body>502 Bad Gateway</body></html>"
	for name, c := range map[string]struct {
		answer ollamatest.Answer
		want   error
		class  string
	}{
		"stream ends without done":    {ollamatest.Answer{Content: verdict, Cut: true}, model.ErrCutShort, model.ClassAway},
		"one letter again and again":  {ollamatest.Answer{Content: strings.Repeat("z", 40), Pieces: 40, Cut: true}, model.ErrRepeats, model.ClassBad},
		"white space again and again": {ollamatest.Answer{Content: verdict[:1] + strings.Repeat("\n\t ", 14), Pieces: 43, Cut: true}, model.ErrRepeats, model.ClassBad},
		"connection reset":            {ollamatest.Answer{Content: verdict, Reset: true}, model.ErrCutShort, model.ClassAway},
		"a line over 8 MB":            {ollamatest.Answer{Content: strings.Repeat("x", 9<<20), Pieces: 1}, model.ErrCutShort, model.ClassAway},
		"an answer over 1 MB":         {ollamatest.Answer{Content: strings.Repeat("x", 2<<20), Pieces: 20}, model.ErrSchema, model.ClassBad},
		"cut by length":               {ollamatest.Answer{Content: `{"reas`, DoneReason: "length"}, model.ErrLength, model.ClassBad},
		"stopped for another reason":  {ollamatest.Answer{Content: verdict, DoneReason: "unload"}, model.ErrCutShort, model.ClassAway},
		"empty":                       {ollamatest.Answer{DoneReason: "stop"}, model.ErrEmpty, model.ClassBad},
		"white space":                 {ollamatest.Answer{Content: "\n \t"}, model.ErrEmpty, model.ClassBad},
		"429 without a body":          {ollamatest.Answer{Status: 429}, model.ErrBusy, model.ClassBusy},
		"503 without a body":          {ollamatest.Answer{Status: 503}, model.ErrBusy, model.ClassBusy},
		"busy":                        {ollamatest.Answer{Status: 503, Body: `{"error":"server busy, please try again.  maximum pending requests exceeded"}`}, model.ErrBusy, model.ClassBusy},
		"missing":                     {ollamatest.Answer{Status: 404, Body: `{"error":"model \"tiny-chat\" not found, try pulling it first"}`}, model.ErrMissing, model.ClassMissing},
		"missing, in other words":     {ollamatest.Answer{Status: 404, Body: `{"error":"model 'tiny-chat' not found"}`}, model.ErrMissing, model.ClassMissing},
		"no memory":                   {ollamatest.Answer{Status: 500, Body: `{"error":"model requires more system memory (5.1 GiB) than is available (1.2 GiB)"}`}, model.ErrMemory, model.ClassMemory},
		"runner killed in the stream": {ollamatest.Answer{Content: verdict, StreamErr: "model runner has unexpectedly stopped, this may be due to resource limitations or an internal error, check ollama server logs for details"}, model.ErrMemory, model.ClassMemory},
		"prompt too long":             {ollamatest.Answer{Status: 400, Body: `{"error":"the input length exceeds the context length"}`}, model.ErrPromptTooLong, model.ClassTooLong},
		"prompt too long, as a 500":   {ollamatest.Answer{Status: 500, Body: `{"error":"the input length exceeds the context length"}`}, model.ErrPromptTooLong, model.ClassTooLong},
		"no chat model":               {ollamatest.Answer{Status: 400, Body: `{"error":"\"tiny-embed\" does not support chat"}`}, model.ErrRefused, model.ClassBad},
		"internal error":              {ollamatest.Answer{Status: 500, Body: `{"error":"something broke"}`}, model.ErrAway, model.ClassAway},
		"a gateway's page":            {ollamatest.Answer{Status: 502, Body: page}, model.ErrAway, model.ClassAway},
		"a page with status 200":      {ollamatest.Answer{Body: page}, model.ErrAway, model.ClassAway},
		"not for us":                  {ollamatest.Answer{Status: 401, Body: `{"error":"unauthorized"}`}, model.ErrAway, model.ClassAway},
		"forbidden":                   {ollamatest.Answer{Status: 403}, model.ErrAway, model.ClassAway},
		"another error in the stream": {ollamatest.Answer{Content: verdict, StreamErr: "an error was encountered while running the model"}, model.ErrAway, model.ClassAway},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, engine := open(t, nil)
			server.Script(c.answer)
			_, err := engine.Generate(t.Context(), judging.Request())
			require.ErrorIs(t, err, c.want)
			require.Equal(t, c.class, model.Class(err))
			require.Equal(t, 1, server.Calls("/api/chat"), "what may be repeated is the caller's to decide")

			server.Script(ollamatest.Answer{Content: verdict})
			_, err = engine.Generate(t.Context(), judging.Request())
			require.NoError(t, err, "the next call is good")
		})
	}
}

func TestAnswersOfOtherFormsGoThroughTheWholeStep(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"fenced":      "```json\n" + verdict + "\n```",
		"think block": "<think>They {differ}.</think>\n" + verdict,
		"two objects": verdict + "\n" + `{"reason":"","relation":"distinct"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, engine := open(t, nil)
			server.Script(ollamatest.Answer{Content: content})
			v, err := model.Judge(t.Context(), model.Call{Model: engine}, judging)
			require.NoError(t, err)
			require.Equal(t, model.Contradiction, v.Relation)
			require.Equal(t, 1, server.Calls("/api/chat"))
		})
	}
}

func TestAMissingModelIsNamedWithItsCommand(t *testing.T) {
	t.Parallel()
	server, engine := open(t, func(c *ollama.Config) { c.ChatModel = "llama3.2:3b" })
	info, err := engine.Info(t.Context())
	require.ErrorIs(t, err, model.ErrMissing)
	require.Contains(t, err.Error(), "ollama pull llama3.2:3b")
	require.NotContains(t, err.Error(), "nomic", "what is there is not named")
	require.ElementsMatch(t, []string{ollamatest.ChatModel, ollamatest.EmbedModel}, info.Installed)
	_, err = engine.Generate(t.Context(), judging.Request())
	require.ErrorIs(t, err, model.ErrMissing)
	require.Zero(t, server.Calls("/api/pull"))
	require.Zero(t, server.Calls("/api/chat"), "nothing stands in for it")

	server.Install("llama3.2:3b")
	server.Remove(ollamatest.EmbedModel)
	_, err = engine.Info(t.Context())
	require.ErrorContains(t, err, "ollama pull nomic-embed-text")

	server.Install(ollamatest.EmbedModel)
	info, err = engine.Info(t.Context())
	require.NoError(t, err)
	require.Equal(t, "sha-llama3.2:3b", info.ChatDigest)
	require.Equal(t, ollamatest.Dimension, info.Dimension)
	require.Equal(t, 0.7, info.Floor)
	require.Equal(t, "nomic", info.Prefixes)

	server.Install("llama3.2:3b")
	after, err := engine.Info(t.Context())
	require.NoError(t, err)
	require.NotEqual(t, info.ChatDigest, after.ChatDigest, "a model that was pulled anew is another one")
}

func TestNoServer(t *testing.T) {
	t.Parallel()
	const address = "127.0.0.1:1" // a port that was free a moment ago may be another's
	engine, err := ollama.New(ollama.Config{Host: address})
	require.NoError(t, err)
	t.Cleanup(engine.Close)
	_, err = engine.Info(t.Context())
	require.ErrorIs(t, err, model.ErrAway)
	require.Contains(t, err.Error(), address)
	_, err = engine.Generate(t.Context(), judging.Request())
	require.ErrorIs(t, err, model.ErrAway)
	_, err = engine.Embed(t.Context(), []string{"a"}, model.Document)
	require.ErrorIs(t, err, model.ErrAway)
	chosen, why, err := model.Choose(t.Context(), model.EngineAuto, engine)
	require.NoError(t, err)
	require.Equal(t, model.EngineExtractive, chosen)
	require.Contains(t, why, address)
}

func TestCancelInMidStreamEndsTheServersWork(t *testing.T) {
	t.Parallel()
	server, engine := open(t, nil)
	hold := make(chan struct{})
	defer close(hold)
	server.Script(ollamatest.Answer{Content: verdict, Hold: hold})
	cause := errors.New("the run was cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := engine.Generate(ctx, judging.Request())
		done <- err
	}()
	ollamatest.Soon(t, "the request is there", func() bool { return server.InFlight() == 1 })
	cancel(cause)
	err := <-done
	require.ErrorIs(t, err, cause)
	require.Empty(t, model.Class(err))
	ollamatest.Soon(t, "the server sees that the client is gone", func() bool { return server.Gone() == 1 && server.InFlight() == 0 })
}

func TestACallEndsAtItsTimeout(t *testing.T) {
	t.Parallel()
	server, engine := open(t, func(c *ollama.Config) { c.Timeout = 2 * time.Second })
	hold := make(chan struct{})
	defer close(hold)
	server.Script(ollamatest.Answer{Content: verdict, Hold: hold})
	_, err := engine.Generate(t.Context(), judging.Request())
	require.ErrorIs(t, err, model.ErrTimeout)
	require.Equal(t, model.ClassTimeout, model.Class(err))
	server.ScriptEmbed(ollamatest.Answer{Hold: hold})
	_, err = engine.Embed(t.Context(), []string{"a"}, model.Document)
	require.ErrorIs(t, err, model.ErrTimeout)
}

func TestEmbeddingsArePrefixedAndSentInBatches(t *testing.T) {
	t.Parallel()
	server, engine := open(t, nil)
	texts := make([]string, 70)
	for i := range texts {
		texts[i] = fmt.Sprint("text ", i)
	}
	vectors, err := engine.Embed(t.Context(), texts, model.Document)
	require.NoError(t, err)
	require.Len(t, vectors, 70)
	_, err = engine.Embed(t.Context(), texts[:1], model.Query)
	require.NoError(t, err)
	calls := server.Embeds()
	require.Len(t, calls, 4)
	for i, want := range []int{32, 32, 6, 1} {
		require.Len(t, calls[i].Input, want)
		require.False(t, *calls[i].Truncate)
		require.Empty(t, calls[i].Options, "one option set: another one would load the model anew")
	}
	require.Equal(t, "search_document: text 0", calls[0].Input.([]any)[0])
	require.Equal(t, "search_query: text 0", calls[3].Input.([]any)[0])
}

func TestEmbeddingFailures(t *testing.T) {
	t.Parallel()
	change := func(f func([][]float32) [][]float32) ollamatest.Answer { return ollamatest.Answer{Vectors: f} }
	for name, c := range map[string]struct {
		answer ollamatest.Answer
		want   error
	}{
		"one too few":       {change(func(v [][]float32) [][]float32 { return v[1:] }), model.ErrEmbedding},
		"one too many":      {change(func(v [][]float32) [][]float32 { return append(v, v[0]) }), model.ErrEmbedding},
		"another dimension": {change(func(v [][]float32) [][]float32 { v[1] = v[1][1:]; return v }), model.ErrEmbedding},
		"zeros":             {change(func(v [][]float32) [][]float32 { clear(v[0]); return v }), model.ErrEmbedding},
		"overflow":          {change(func(v [][]float32) [][]float32 { v[0][0] = math.MaxFloat32; v[0][1] = math.MaxFloat32; return v }), nil},
		"text too long":     {ollamatest.Answer{Status: 400, Body: `{"error":"the input length exceeds the context length"}`}, model.ErrPromptTooLong},
		"busy":              {ollamatest.Answer{Status: 503}, model.ErrBusy},
		"429":               {ollamatest.Answer{Status: 429}, model.ErrBusy},
		"missing":           {ollamatest.Answer{Status: 404, Body: `{"error":"model 'nomic-embed-text' not found"}`}, model.ErrMissing},
		"reset":             {ollamatest.Answer{Reset: true}, model.ErrAway},
		"no JSON":           {ollamatest.Answer{Body: "<html>"}, model.ErrAway},
		"cut JSON":          {ollamatest.Answer{Body: `{"embeddings":[[0.1`}, model.ErrAway},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, engine := open(t, nil)
			server.ScriptEmbed(c.answer)
			_, err := engine.Embed(t.Context(), []string{"a", "b"}, model.Document)
			require.ErrorIs(t, err, c.want)
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	t.Parallel()
	other := ollamatest.Start(t)
	front := httptest.NewServer(http.RedirectHandler(other.URL()+"/api/tags", http.StatusTemporaryRedirect))
	t.Cleanup(front.Close)
	engine, err := ollama.New(ollama.Config{Host: front.URL, ChatModel: "tiny-chat"})
	require.NoError(t, err)
	t.Cleanup(engine.Close)
	_, err = engine.Info(t.Context())
	require.ErrorIs(t, err, model.ErrAway)
	require.ErrorContains(t, err, "redirects")
	require.Zero(t, other.Calls("/api/tags"))
}

func TestAServerThatSaysNothingIsAway(t *testing.T) {
	t.Parallel()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(silent.Close)
	engine, err := ollama.New(ollama.Config{Host: silent.URL, Timeout: 100 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(engine.Close)
	_, err = engine.Info(t.Context())
	require.ErrorIs(t, err, model.ErrAway, "to be waited for, not a failure of the step")
}

func TestNotAnOllamaServer(t *testing.T) {
	t.Parallel()
	front := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(front.Close)
	engine, err := ollama.New(ollama.Config{Host: front.URL})
	require.NoError(t, err)
	t.Cleanup(engine.Close)
	_, err = engine.Info(t.Context())
	require.ErrorIs(t, err, model.ErrAway)
}

func TestNewRefusesABadConfiguration(t *testing.T) {
	t.Parallel()
	_, err := ollama.New(ollama.Config{NumCtx: 100})
	require.ErrorContains(t, err, "512")
	_, err = ollama.New(ollama.Config{Host: "ftp://example.org"})
	require.ErrorContains(t, err, "ftp")
}
