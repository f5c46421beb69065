// Package ollamatest is an Ollama server for tests: it speaks the part of the protocol that package ollama uses, over a real socket on
// 127.0.0.1, answers by a script or with the smallest values that a schema allows, fails as told, and counts.
package ollamatest

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ollama/ollama/api"
)

// Models that a new server has. Their digests are "sha-" and the name.
const (
	ChatModel  = "tiny-chat:latest"
	EmbedModel = "nomic-embed-text:latest"
	Dimension  = 64
)

// Answer is what the server does with one request. The zero value is a good answer made by the server itself.
type Answer struct {
	Status  int         // other than 0 and 200: an error response with Body as it is
	Body    string      // of an error response; also of a good one if it is not ""
	Header  http.Header // added to the response
	Content string      // chat: what the model writes
	Pieces  int         // chat: over how many lines it is spread; 0 means 3

	DoneReason string        // chat: "" means "stop"
	Cut        bool          // chat: the stream ends in good order, without a line that says done
	Reset      bool          // the connection is reset after half of the content
	StreamErr  string        // chat: a line with an error after half of the content
	Hold       chan struct{} // the answer waits, half of the content sent, until this is closed or the client is gone

	Vectors func(v [][]float32) [][]float32 // embed: changes the good vectors
}

// ChatCall is one request for a reply, as it came.
type ChatCall struct {
	api.ChatRequest
	Raw map[string]json.RawMessage // the body's fields, to tell absent from zero
}

// Server is a stand-in. Its methods may be used from any goroutine at any time.
type Server struct {
	http *httptest.Server

	mu       sync.Mutex
	models   map[string]string // digest by name
	chat     []Answer          // script, used from the front
	embed    []Answer
	respond  func(ChatCall) Answer
	chats    []ChatCall
	embeds   []api.EmbedRequest
	calls    map[string]int // by path
	inflight int
	most     int
	gone     int
}

// Start serves until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{models: map[string]string{}, calls: map[string]int{}}
	s.Install(ChatModel)
	s.Install(EmbedModel)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/tags", s.tags)
	mux.HandleFunc("POST /api/show", s.show)
	mux.HandleFunc("POST /api/chat", s.chatting)
	mux.HandleFunc("POST /api/embed", s.embedding)
	s.http = httptest.NewServer(s.counted(mux))
	t.Cleanup(s.Close)
	return s
}

// URL is the server's address.
func (s *Server) URL() string { return s.http.URL }

// Close ends all connections and the server.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Install adds a model; a name that is there gets another digest, as after a pull of a newer one.
func (s *Server) Install(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	digest := "sha-" + name
	for s.models[name] == digest {
		digest += "+"
	}
	s.models[name] = digest
}

// Remove takes a model away.
func (s *Server) Remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.models, name)
}

// Script appends answers for the next chat requests, one each. When they are used up, Respond's function answers.
func (s *Server) Script(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.chat = append(s.chat, answers...)
}

// ScriptEmbed appends answers for the next embedding requests.
func (s *Server) ScriptEmbed(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.embed = append(s.embed, answers...)
}

// Respond sets what answers chat requests outside the script; nil is the default: Smallest of the schema.
func (s *Server) Respond(f func(ChatCall) Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.respond = f
}

// Chats returns the chat requests so far.
func (s *Server) Chats() []ChatCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]ChatCall(nil), s.chats...)
}

// Embeds returns the embedding requests so far.
func (s *Server) Embeds() []api.EmbedRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]api.EmbedRequest(nil), s.embeds...)
}

// Calls is how often a path was asked for, e.g. "/api/chat".
func (s *Server) Calls(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[path]
}

// MostAtOnce is the largest number of chat and embedding requests that were being answered at one time.
func (s *Server) MostAtOnce() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.most
}

// InFlight is how many chat and embedding requests are being answered.
func (s *Server) InFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inflight
}

// Gone is how many clients went away before their answer was complete.
func (s *Server) Gone() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gone
}

func (s *Server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.calls[r.URL.Path]++
		work := r.Method == http.MethodPost && r.URL.Path != "/api/show"
		if work {
			s.inflight++
			s.most = max(s.most, s.inflight)
		}
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if work {
				s.inflight--
			}
			if r.Context().Err() != nil {
				s.gone++
			}
		}()
		next.ServeHTTP(w, r)
	})
}

func (s *Server) tags(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	list := api.ListResponse{Models: []api.ListModelResponse{}}
	for name, digest := range s.models {
		list.Models = append(list.Models, api.ListModelResponse{Name: name, Model: name, Digest: digest})
	}
	s.mu.Unlock()
	write(w, http.StatusOK, list)
}

func (s *Server) show(w http.ResponseWriter, r *http.Request) {
	var req api.ShowRequest
	if !read(w, r, &req) || !s.has(w, req.Model) {
		return
	}
	write(w, http.StatusOK, map[string]any{"model_info": map[string]any{"general.architecture": "bert", "bert.embedding_length": Dimension}})
}

func (s *Server) chatting(w http.ResponseWriter, r *http.Request) {
	var raw json.RawMessage
	if !read(w, r, &raw) {
		return
	}
	var call ChatCall
	if json.Unmarshal(raw, &call.ChatRequest) != nil || json.Unmarshal(raw, &call.Raw) != nil {
		write(w, http.StatusBadRequest, map[string]string{"error": "bad request"})
		return
	}
	if !s.has(w, call.Model) {
		return
	}
	answer := s.next(call)
	if answer.plain(w) {
		return
	}
	w.Header().Set("Content-Type", "application/x-ndjson")
	lines := json.NewEncoder(w)
	flush := func() { _ = http.NewResponseController(w).Flush() }
	pieces := split(answer.Content, max(answer.Pieces, 1))
	if answer.Pieces == 0 {
		pieces = split(answer.Content, 3)
	}
	for i, piece := range pieces {
		if i == len(pieces)/2 && !answer.middle(w, r, lines, flush) {
			return
		}
		_ = lines.Encode(api.ChatResponse{Model: call.Model, Message: api.Message{Role: "assistant", Content: piece}})
		flush()
	}
	if answer.Cut {
		return
	}
	if answer.DoneReason == "" {
		answer.DoneReason = "stop"
	}
	_ = lines.Encode(api.ChatResponse{Model: call.Model, Done: true, DoneReason: answer.DoneReason, Message: api.Message{Role: "assistant"},
		Metrics: api.Metrics{PromptEvalCount: len(strings.Fields(call.Messages[len(call.Messages)-1].Content)), EvalCount: len(pieces)}})
}

// next takes an answer from the script or makes one.
func (s *Server) next(call ChatCall) Answer {
	s.mu.Lock()
	s.chats = append(s.chats, call)
	respond := s.respond
	if len(s.chat) > 0 {
		answer := s.chat[0]
		s.chat = s.chat[1:]
		if answer.Content != "" || answer.DoneReason != "" {
			s.mu.Unlock()
			return answer
		}
		s.mu.Unlock()
		answer.Content = Smallest(call.Format)
		return answer
	}
	s.mu.Unlock()
	if respond != nil {
		return respond(call)
	}
	return Answer{Content: Smallest(call.Format)}
}

// plain writes an answer that is no stream and reports whether it was one.
func (a Answer) plain(w http.ResponseWriter) bool {
	for name, values := range a.Header {
		for _, value := range values {
			w.Header().Add(name, value)
		}
	}
	if a.Body == "" && (a.Status == 0 || a.Status == http.StatusOK) {
		return false
	}
	if a.Status != 0 {
		w.WriteHeader(a.Status)
	}
	_, _ = w.Write([]byte(a.Body))
	return true
}

// middle does what an answer does when half of its content is out, and reports whether it goes on.
func (a Answer) middle(w http.ResponseWriter, r *http.Request, lines *json.Encoder, flush func()) bool {
	if a.Hold != nil {
		flush()
		select {
		case <-a.Hold:
		case <-r.Context().Done():
			return false
		}
	}
	if a.Reset {
		reset(w)
		return false
	}
	if a.StreamErr != "" {
		_ = lines.Encode(map[string]string{"error": a.StreamErr})
		return false
	}
	return true
}

func (s *Server) embedding(w http.ResponseWriter, r *http.Request) {
	var req api.EmbedRequest
	if !read(w, r, &req) || !s.has(w, req.Model) {
		return
	}
	s.mu.Lock()
	s.embeds = append(s.embeds, req)
	var answer Answer
	if len(s.embed) > 0 {
		answer, s.embed = s.embed[0], s.embed[1:]
	}
	s.mu.Unlock()
	if answer.plain(w) {
		return
	}
	if answer.Hold != nil {
		select {
		case <-answer.Hold:
		case <-r.Context().Done():
			return
		}
	}
	if answer.Reset {
		reset(w)
		return
	}
	var vectors [][]float32
	if texts, ok := req.Input.([]any); ok {
		for _, text := range texts {
			vectors = append(vectors, Vector(fmt.Sprint(text)))
		}
	}
	if answer.Vectors != nil {
		vectors = answer.Vectors(vectors)
	}
	write(w, http.StatusOK, api.EmbedResponse{Model: req.Model, Embeddings: vectors})
}

// has answers 404 as Ollama does when the model is not there.
func (s *Server) has(w http.ResponseWriter, name string) bool {
	if !strings.Contains(name, ":") {
		name += ":latest"
	}
	s.mu.Lock()
	_, ok := s.models[name]
	s.mu.Unlock()
	if !ok {
		write(w, http.StatusNotFound, map[string]string{"error": fmt.Sprintf("model %q not found, try pulling it first", name)})
	}
	return ok
}

// Vector is the server's embedding of a text: its words, each thrown on one of the dimensions, so that texts that share words are
// alike. It is of length 3, since Ollama's own are not always normalised.
func Vector(text string) []float32 {
	v := make([]float32, Dimension)
	for _, word := range strings.Fields(strings.ToLower(text)) {
		h := fnv.New32a()
		_, _ = h.Write([]byte(strings.Trim(word, ".,;:?!")))
		v[h.Sum32()%Dimension]++
	}
	sum := 0.0
	for _, x := range v {
		sum += float64(x * x)
	}
	if sum == 0 {
		v[0], sum = 1, 1
	}
	for i := range v {
		v[i] *= float32(3 / math.Sqrt(sum))
	}
	return v
}

// Smallest is the smallest good answer to a schema, as a very small model might give: lists of one item, number 1 of every list of
// choices, the first value of an enumeration, 0.5, and one short sentence for every text.
func Smallest(schema json.RawMessage) string {
	data, err := json.Marshal(smallest(schema, "answer"))
	if err != nil {
		return ""
	}
	return string(data)
}

func smallest(schema json.RawMessage, name string) any {
	var s struct {
		Type       json.RawMessage            `json:"type"`
		Enum       []any                      `json:"enum"`
		Items      json.RawMessage            `json:"items"`
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	if len(s.Enum) > 0 {
		return s.Enum[0]
	}
	var kinds []string
	if json.Unmarshal(s.Type, &kinds) != nil {
		kinds = []string{strings.Trim(string(s.Type), `"`)}
	}
	switch kinds[0] {
	case "object":
		object := map[string]any{}
		for key, value := range s.Properties {
			object[key] = smallest(value, key)
		}
		return object
	case "array":
		return []any{smallest(s.Items, name)}
	case "integer":
		return 1
	case "number":
		return 0.5
	case "boolean":
		return false
	case "string":
		return "A short text for " + strings.ReplaceAll(name, "_", " ")
	}
	return nil
}

func split(s string, n int) []string {
	if s == "" {
		return []string{""}
	}
	var out []string
	letters := []rune(s)
	for i := range n {
		out = append(out, string(letters[len(letters)*i/n:len(letters)*(i+1)/n]))
	}
	return out
}

// reset closes the connection so that the client sees it break off.
func reset(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = conn.Close()
}

func read(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		write(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return false
	}
	return true
}

func write(w http.ResponseWriter, status int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(strconv.Quote(err.Error()))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(data)
}

// patience of Soon; what is waited for comes far earlier.
const patience = time.Minute

// Soon waits until a condition holds, for tests that watch the server from outside.
func Soon(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", patience, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}
