// Package ollama answers the tasks of package model by a language model that an Ollama server runs, on this machine or at the address
// that a person configured.
//
// Ollama's client hides failures: a stream that breaks off, a cancelled context, a line over 8 MB and an error without a body all end
// without an error. Here a reply counts only when the server said that it is done, that it stopped by itself, and the context still
// stands. Models are used by the exact tag configured: none is pulled, none is substituted, and what is missing is named with the
// command that brings it.
package ollama

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ollama/ollama/api"

	"github.com/factstream/factstream/shared/model"
)

// Defaults of Config.
//
// The chat model fits beside everything else into 8 GB of memory (2 GB of weights, 0.9 GB for 8,192 tokens of context), keeps to a
// JSON schema, writes eight languages and does not think aloud. The embedding model is the one that the judge's floor was measured
// with. The context holds a chunk of 12,000 characters of English with its pages and the answer; tasks in scripts that take more
// tokens are split.
const (
	DefaultChatModel  = "llama3.2:3b"
	DefaultEmbedModel = "nomic-embed-text"
	DefaultNumCtx     = 8192
	DefaultKeepAlive  = 10 * time.Minute
	DefaultTimeout    = 10 * time.Minute
)

const (
	embedBatch = 32      // texts per embedding request: a cancelled call stops soon, and no request grows without bound
	maxContent = 1 << 20 // bytes of a reply; more is no answer to any task

	infoTimeout = 15 * time.Second

	// A server gives up on a model that writes one token, or white space, more than 30 times after the first, and ends the stream
	// without a word (v0.17.4). At temperature 0 the same prompt would end the same way every time.
	repeatLimit = 30
)

// Config says which server and models to use. Zero values mean the defaults above.
type Config struct {
	Host       string // as OLLAMA_HOST: host, host:port or URL
	ChatModel  string // a tag as `ollama list` shows it; without one, ":latest" is meant
	EmbedModel string
	NumCtx     int           // tokens of context of the chat model, at least 512
	Threads    int           // processor threads per request; 0 leaves it to the server
	KeepAlive  time.Duration // how long the server keeps a model in memory after a call
	Timeout    time.Duration // of one call, loading the model included
}

// Engine is a connection to one server. It implements model.Model.
type Engine struct {
	config Config
	host   string
	client *api.Client
	http   *http.Client

	mu    sync.Mutex
	known model.Info     // of the last good Info
	sizes map[string]int // dimension by digest of an embedding model
}

var _ model.Model = (*Engine)(nil)

// New returns an engine. It does not contact the server; a host that cannot be read and a context under 512 tokens are errors.
func New(config Config) (*Engine, error) {
	base, err := ParseHost(config.Host)
	if err != nil {
		return nil, err
	}
	if config.ChatModel == "" {
		config.ChatModel = DefaultChatModel
	}
	if config.EmbedModel == "" {
		config.EmbedModel = DefaultEmbedModel
	}
	if config.NumCtx == 0 {
		config.NumCtx = DefaultNumCtx
	}
	if config.NumCtx < 512 {
		return nil, fmt.Errorf("ollama context of %d tokens: at least 512 are needed", config.NumCtx)
	}
	if config.KeepAlive == 0 {
		config.KeepAlive = DefaultKeepAlive
	}
	if config.Timeout == 0 {
		config.Timeout = DefaultTimeout
	}
	client := &http.Client{
		Transport: honest{&http.Transport{ // no proxy: what threads hold goes to the configured address only
			DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSHandshakeTimeout: 5 * time.Second,
			MaxIdleConnsPerHost: 2,
			IdleConnTimeout:     30 * time.Second,
		}},
		CheckRedirect: func(to *http.Request, _ []*http.Request) error {
			return fmt.Errorf("it redirects to %s, which is not followed", to.URL.Redacted())
		},
	}
	return &Engine{config: config, host: base.String(), client: api.NewClient(base, client), http: client, sizes: map[string]int{}}, nil
}

// Close gives up idle connections.
func (e *Engine) Close() { e.http.CloseIdleConnections() }

// Info asks the server for its models. With ErrMissing the Info returned is filled as far as it can be.
func (e *Engine) Info(ctx context.Context) (model.Info, error) {
	ctx, cancel := e.limitInfo(ctx)
	defer cancel()
	list, err := e.client.List(ctx)
	if err := e.failed(ctx, "list its models", "", err); err != nil {
		return model.Info{}, err
	}
	info := model.Info{
		Engine: model.EngineOllama, ChatModel: e.config.ChatModel, EmbedModel: e.config.EmbedModel,
		Prefixes: prefixesOf(e.config.EmbedModel).name,
	}
	info.Floor, info.FloorReason = floorOf(e.config.EmbedModel)
	digests := map[string]string{}
	for _, m := range list.Models {
		info.Installed = append(info.Installed, m.Name)
		digests[m.Name] = m.Digest
	}
	info.ChatDigest = digests[full(e.config.ChatModel)]
	info.EmbedDigest = digests[full(e.config.EmbedModel)]
	var missing []string
	if info.ChatDigest == "" {
		missing = append(missing, e.config.ChatModel)
	}
	if info.EmbedDigest == "" {
		missing = append(missing, e.config.EmbedModel)
	}
	if len(missing) > 0 {
		return info, &model.MissingError{Models: missing}
	}
	if info.Dimension, err = e.dimension(ctx, info.EmbedDigest); err != nil {
		return info, err
	}
	e.mu.Lock()
	e.known = info
	e.mu.Unlock()
	return info, nil
}

// full is the tag under which the server lists a model.
func full(tag string) string {
	if at := strings.LastIndexByte(tag, '/'); !strings.Contains(tag[at+1:], ":") {
		return tag + ":latest"
	}
	return tag
}

// dimension is the length of the embedding model's vectors, from the model's own description.
func (e *Engine) dimension(ctx context.Context, digest string) (int, error) {
	e.mu.Lock()
	size := e.sizes[digest]
	e.mu.Unlock()
	if size > 0 {
		return size, nil
	}
	shown, err := e.client.Show(ctx, &api.ShowRequest{Model: e.config.EmbedModel})
	if err := e.failed(ctx, "describe "+e.config.EmbedModel, e.config.EmbedModel, err); err != nil {
		return 0, err
	}
	for name, value := range shown.ModelInfo {
		if n, ok := value.(float64); ok && strings.HasSuffix(name, ".embedding_length") {
			size = int(n)
		}
	}
	if size < 1 {
		return 0, fmt.Errorf("%w: %s does not say how long its vectors are", model.ErrEmbedding, e.config.EmbedModel)
	}
	e.mu.Lock()
	e.sizes[digest] = size
	e.mu.Unlock()
	return size, nil
}

// current is the Info of the last call of it, or else a new one.
func (e *Engine) current(ctx context.Context) (model.Info, error) {
	e.mu.Lock()
	info := e.known
	e.mu.Unlock()
	if info.Engine != "" {
		return info, nil
	}
	return e.Info(ctx)
}

// Generate answers a request. The reply's text is what the model wrote outside its thoughts.
func (e *Engine) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	info, err := e.current(ctx)
	if err != nil {
		return model.Reply{}, err
	}
	ctx, cancel := e.limit(ctx)
	defer cancel()
	off := false
	options := map[string]any{"num_ctx": e.config.NumCtx, "num_predict": req.MaxTokens, "temperature": 0, "seed": 1}
	if e.config.Threads > 0 {
		options["num_thread"] = e.config.Threads
	}
	began := time.Now()
	var content strings.Builder
	var end *api.ChatResponse
	var last string
	repeats := 0
	err = e.client.Chat(ctx, &api.ChatRequest{
		Model:     e.config.ChatModel,
		Messages:  []api.Message{{Role: "system", Content: req.System}, {Role: "user", Content: req.Prompt}},
		Format:    req.Schema,
		Options:   options,
		KeepAlive: &api.Duration{Duration: e.config.KeepAlive},
		Think:     &api.ThinkValue{Value: false}, // thoughts cost minutes without a GPU, and the tasks are small
		Truncate:  &off,                          // a prompt that does not fit is an error, not half a prompt
		Shift:     &off,
	}, func(part api.ChatResponse) error {
		if content.Len()+len(part.Message.Content) > maxContent {
			return fmt.Errorf("%w: over %d bytes long", model.ErrSchema, maxContent)
		}
		content.WriteString(part.Message.Content)
		if token := strings.TrimSpace(part.Message.Content); token == last {
			repeats++
		} else {
			last, repeats = token, 0
		}
		if part.Done {
			end = &part
		}
		return nil
	})
	if err := e.failed(ctx, "answer", e.config.ChatModel, err); err != nil {
		return model.Reply{}, err
	}
	switch {
	case end == nil && repeats >= repeatLimit:
		return model.Reply{}, fmt.Errorf("%w: %s wrote %q again and again", model.ErrRepeats, e.config.ChatModel, last)
	case end == nil:
		return model.Reply{}, fmt.Errorf("%w: %s at %s ended its stream without saying that it is done", model.ErrCutShort, e.config.ChatModel, e.host)
	case end.DoneReason == "length":
		return model.Reply{}, fmt.Errorf("%w: %s wrote %d tokens of at most %d", model.ErrLength, e.config.ChatModel, end.EvalCount, req.MaxTokens)
	case end.DoneReason != "stop":
		return model.Reply{}, fmt.Errorf("%w: %s stopped for the reason %q", model.ErrCutShort, e.config.ChatModel, end.DoneReason)
	case strings.TrimSpace(content.String()) == "":
		return model.Reply{}, fmt.Errorf("%w: %s", model.ErrEmpty, e.config.ChatModel)
	}
	return model.Reply{
		Text: content.String(), Engine: model.EngineOllama, Model: info.ChatModel, Digest: info.ChatDigest,
		PromptTokens: end.PromptEvalCount, ReplyTokens: end.EvalCount, Duration: time.Since(began),
	}, nil
}

// Embed embeds texts in requests of 32.
func (e *Engine) Embed(ctx context.Context, texts []string, kind model.EmbedKind) ([][]float32, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	info, err := e.current(ctx)
	if err != nil {
		return nil, err
	}
	prefix := prefixesOf(e.config.EmbedModel).of(kind)
	vectors := make([][]float32, 0, len(texts))
	for from := 0; from < len(texts); from += embedBatch {
		batch := make([]string, 0, embedBatch)
		for _, text := range texts[from:min(from+embedBatch, len(texts))] {
			batch = append(batch, prefix+text)
		}
		part, err := e.embed(ctx, batch, info.Dimension)
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, part...)
	}
	return vectors, nil
}

func (e *Engine) embed(ctx context.Context, batch []string, dimension int) ([][]float32, error) {
	ctx, cancel := e.limit(ctx)
	defer cancel()
	off := false
	request := &api.EmbedRequest{Model: e.config.EmbedModel, Input: batch, Truncate: &off, KeepAlive: &api.Duration{Duration: e.config.KeepAlive}}
	if e.config.Threads > 0 {
		request.Options = map[string]any{"num_thread": e.config.Threads}
	}
	response, err := e.client.Embed(ctx, request)
	if err := e.failed(ctx, "embed", e.config.EmbedModel, err); err != nil {
		return nil, err
	}
	if len(response.Embeddings) != len(batch) {
		return nil, fmt.Errorf("%w: %d vectors from %s for %d texts", model.ErrEmbedding, len(response.Embeddings), e.config.EmbedModel, len(batch))
	}
	for i, v := range response.Embeddings {
		if len(v) != dimension {
			return nil, fmt.Errorf("%w: a vector of %d values from %s, which has %d", model.ErrEmbedding, len(v), e.config.EmbedModel, dimension)
		}
		if !normalise(v) {
			return nil, fmt.Errorf("%w: the vector of text %d from %s has no direction", model.ErrEmbedding, i, e.config.EmbedModel)
		}
	}
	return response.Embeddings, nil
}

// normalise makes v of length 1; it reports false for a vector of zeros or with values that are no numbers.
func normalise(v []float32) bool {
	sum := 0.0
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	length := math.Sqrt(sum)
	if length == 0 || math.IsNaN(length) || math.IsInf(length, 0) {
		return false
	}
	for i := range v {
		v[i] = float32(float64(v[i]) / length)
	}
	return true
}

// limit bounds one call of a model.
func (e *Engine) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, e.config.Timeout, fmt.Errorf("%w: over %s", model.ErrTimeout, e.config.Timeout))
}

// limitInfo bounds a question about models, which a server that works answers at once; one that does not is away.
func (e *Engine) limitInfo(ctx context.Context) (context.Context, context.CancelFunc) {
	wait := min(infoTimeout, e.config.Timeout)
	return context.WithTimeoutCause(ctx, wait, fmt.Errorf("%w within %s", model.ErrAway, wait))
}

// failed turns the end of a call into one of the model's errors, or nil. Doing says what the server was to do, tag which model it
// needed ("" for none).
func (e *Engine) failed(ctx context.Context, doing, tag string, err error) error {
	if ctx.Err() != nil { // whatever the client says of it, which may be nothing
		return fmt.Errorf("ollama at %s, asked to %s: %w", e.host, doing, context.Cause(ctx))
	}
	if err == nil {
		return nil
	}
	if errors.Is(err, model.ErrSchema) {
		return err
	}
	if kind := kindOf(err, tag); kind != nil {
		return fmt.Errorf("ollama at %s, asked to %s: %w: %w", e.host, doing, kind, err)
	}
	return &model.MissingError{Models: []string{tag}}
}

// kindOf sorts an error of the client by status first and then by its words, since Ollama reports most failures as 500 or as a line
// in a stream that began well. It returns nil for a model that the server does not have.
func kindOf(err error, tag string) error {
	status := 0
	var plain api.StatusError
	var unauthorised api.AuthorizationError
	switch {
	case errors.As(err, &plain):
		status = plain.StatusCode
	case errors.As(err, &unauthorised):
		return model.ErrAway
	}
	words := strings.ToLower(err.Error())
	holds := func(parts ...string) bool {
		for _, part := range parts {
			if strings.Contains(words, part) {
				return true
			}
		}
		return false
	}
	var syntax *json.SyntaxError
	switch {
	case status == http.StatusServiceUnavailable, status == http.StatusTooManyRequests, holds("server busy"):
		return model.ErrBusy
	case tag != "" && holds("not found") && holds("model "):
		return nil
	case holds("context length", "maximum context", "exceeds context", "input is too large", "too many tokens"):
		return model.ErrPromptTooLong
	case holds("memory", "resource limitations", "failed to allocate"):
		return model.ErrMemory
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound, status == http.StatusProxyAuthRequired:
		return model.ErrAway // someone else's server, or one that does not want us
	case status >= 400 && status < 500:
		return model.ErrRefused
	case errors.As(err, &syntax):
		return model.ErrAway // a page instead of an answer
	}
	return model.ErrAway
}
