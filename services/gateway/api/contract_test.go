package api_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/services/gateway/api"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/service/servicetest"
)

// contract is the OpenAPI document, against which answers are held.
type contract struct {
	t          testing.TB
	Paths      map[string]map[string]map[string]any `json:"paths"`
	Components struct {
		Schemas map[string]map[string]any `json:"schemas"`
	} `json:"components"`
}

// described is the document, which is the same for every gateway: the first that is asked gives it.
func described(t testing.TB, g *gateway) contract {
	t.Helper()
	document.once.Do(func() {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+"/openapi.json", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+g.service.Config.Token.Reveal())
		response, err := (&http.Client{Transport: g.transport}).Do(r)
		require.NoError(t, err)
		defer response.Body.Close() //nolint:errcheck // only read
		require.NoError(t, json.NewDecoder(response.Body).Decode(&document.contract))
	})
	c := document.contract
	c.t = t
	return c
}

var document struct {
	once     sync.Once
	contract contract
}

// at finds the path of the document that a request goes to; empty when there is none. One without parameters goes before one with.
func (c contract) at(requested string) (found string) {
	requested, _, _ = strings.Cut(requested, "?")
	for path := range c.Paths {
		pattern := regexp.MustCompile(`\\\{[^}]*\\\}`).ReplaceAllString(regexp.QuoteMeta(path), `[^/]+`)
		if regexp.MustCompile("^"+pattern+"$").MatchString(requested) && (found == "" || strings.Contains(found, "{")) {
			found = path
		}
	}
	return found
}

// operation is what answers a method: HEAD is answered as GET, and a method that the path does not take as every operation of it describes.
func (c contract) operation(method, path string) map[string]any {
	if o := c.Paths[path][strings.ToLower(strings.Replace(method, http.MethodHead, http.MethodGet, 1))]; o != nil {
		return o
	}
	for _, o := range c.Paths[path] {
		return o
	}
	return nil
}

// declares gives the schema of what an answer holds; it fails when its status or its media type are not described.
func (c contract) declares(method, path string, a answer) map[string]any {
	c.t.Helper()
	operation := c.operation(method, path)
	require.NotNil(c.t, operation, "%s %s is not described", method, path)
	response, declared := operation["responses"].(map[string]any)[fmt.Sprint(a.status)].(map[string]any)
	require.True(c.t, declared, "%s %s does not declare %d", method, path, a.status)
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	media, declared := response["content"].(map[string]any)[kind].(map[string]any)
	require.True(c.t, declared, "%s %s does not declare %s for %d", method, path, kind, a.status)
	return media["schema"].(map[string]any)
}

// answered holds an answer against what the document says of it.
func (c contract) answered(method, path string, a answer) {
	c.t.Helper()
	schema := c.declares(method, path, a)
	var value any
	if strings.Contains(a.header.Get("Content-Type"), "json") {
		require.NoError(c.t, json.Unmarshal(a.body, &value))
	} else {
		value = string(a.body)
	}
	require.NoError(c.t, c.fits(value, schema, method+" "+path))
}

// fits checks type, null, the members that there must be and those that there may be.
func (c contract) fits(value any, schema map[string]any, at string) error {
	if ref, ok := schema["$ref"].(string); ok {
		return c.fits(value, c.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")], at)
	}
	if choices, ok := schema["oneOf"].([]any); ok {
		var errs []string
		for _, choice := range choices {
			err := c.fits(value, choice.(map[string]any), at)
			if err == nil {
				return nil
			}
			errs = append(errs, err.Error())
		}
		return fmt.Errorf("none of the choices: %s", strings.Join(errs, "; or "))
	}
	if !hasType(schema["type"], value) {
		return fmt.Errorf("%s is %T, not %v", at, value, schema["type"])
	}
	switch v := value.(type) {
	case []any:
		items, _ := schema["items"].(map[string]any)
		for i, item := range v {
			if err := c.fits(item, items, fmt.Sprintf("%s[%d]", at, i)); err != nil {
				return err
			}
		}
	case map[string]any:
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, ok := v[name.(string)]; !ok {
				return fmt.Errorf("%s has no %s", at, name)
			}
		}
		properties, closed := schema["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			property, known := properties[name].(map[string]any)
			if !known {
				if closed && schema["additionalProperties"] == false {
					return fmt.Errorf("%s.%s is not described", at, name)
				}
				continue
			}
			if err := c.fits(v[name], property, at+"."+name); err != nil {
				return err
			}
		}
	case string:
		if schema["format"] == "date-time" && !strings.HasSuffix(v, "Z") {
			return fmt.Errorf("%s is %q: not in UTC", at, v)
		}
	}
	return nil
}

func hasType(types, value any) bool {
	var allowed []any
	switch t := types.(type) {
	case nil:
		return true // any
	case []any:
		allowed = t
	default:
		allowed = []any{t}
	}
	switch v := value.(type) {
	case nil:
		return slices.Contains(allowed, any("null"))
	case bool:
		return slices.Contains(allowed, any("boolean"))
	case float64:
		return slices.Contains(allowed, any("number")) || v == float64(int64(v)) && slices.Contains(allowed, any("integer"))
	case string:
		return slices.Contains(allowed, any("string"))
	case []any:
		return slices.Contains(allowed, any("array"))
	default:
		return slices.Contains(allowed, any("object"))
	}
}

func TestAnswersAreWhatTheDescriptionSays(t *testing.T) {
	t.Parallel()
	g := start(t)
	c := described(t, g)
	ids := map[string]string{"{thread}": g.create("Why?").ID}
	ask := func(method, path string, body any, query ...string) answer {
		real := path
		for name, id := range ids {
			real = strings.ReplaceAll(real, name, id)
		}
		a := g.do(method, "/api/v1"+real+strings.Join(query, ""), body)
		c.answered(method, "/api/v1"+path, a)
		return a
	}
	ask("GET", "/threads/{thread}", nil)
	ask("GET", "/threads/{thread}/brief", nil) // there is none yet
	run := g.run(ids["{thread}"])
	ids["{run}"] = run.ID
	ask("GET", "/runs/{run}", nil)
	ask("DELETE", "/runs/{run}", nil) // it is under way
	g.complete(ids["{thread}"], run.ID)
	for _, path := range []string{
		"/threads", "/threads/{thread}", "/threads/{thread}/runs", "/runs/{run}", "/runs/{run}/trail", "/threads/{thread}/facts", "/threads/{thread}/sources",
		"/threads/{thread}/questions", "/threads/{thread}/contradictions", "/threads/{thread}/brief", "/threads/{thread}/coverage", "/settings", "/dead",
	} {
		require.Equal(t, 200, ask("GET", path, nil).status, path)
	}
	ask("GET", "/threads/{thread}/brief", nil, "?history=true")
	ask("GET", "/threads/{thread}/coverage", nil, "?history=true")
	ask("GET", "/threads/{thread}", nil, "?as_of="+time.Now().UTC().Format(time.RFC3339Nano))
	ask("POST", "/threads/{thread}/questions", `{"text":"And this?"}`)
	ask("PATCH", "/threads/{thread}", `{"tags":["x"],"answer_budget":null}`)
	ask("PATCH", "/threads/{thread}", `{"budget":0}`)
	require.Equal(t, 402, ask("POST", "/threads/{thread}/runs", `{}`).status)
	require.Equal(t, 409, ask("POST", "/threads/{thread}/start", nil).status)
	ask("POST", "/threads/{thread}/pause", nil)
	ask("POST", "/runs/{run}/cancel", nil)
	ask("POST", "/runs/{run}/stages/{stage}/retry", nil)
	require.Equal(t, 400, ask("POST", "/threads", `{`).status)
	require.Equal(t, 400, ask("PUT", "/settings", nil).status)
	require.Equal(t, 422, ask("POST", "/threads", `{"question":""}`).status)
	require.Equal(t, 202, ask("POST", "/threads/{thread}/rebuild", nil).status)
	ask("DELETE", "/threads/{thread}", nil)
	require.Equal(t, 410, ask("GET", "/threads/{thread}", nil).status)
	for _, path := range []string{"/healthz", "/readyz", "/metrics", "/openapi.json", "/"} {
		a := g.do("GET", path, nil)
		require.Equal(t, 200, a.status, path)
		c.answered("GET", path, a)
	}
}

// What the guard, the mux and the framework refuse, they refuse of every operation. (What handlers refuse is held against the description by every
// test of this package that sends it.)
func TestEveryRefusalOfEveryOperationIsDescribed(t *testing.T) {
	t.Parallel()
	g := start(t)
	locked := start(t, func(c *config.Config) { c.Token = "t0ken" })
	slow := startWith(t, servicetest.NewBus(t), api.Options{BodyTimeout: 20 * time.Millisecond})
	c := described(t, g)
	sent := map[int]int{}
	for path, operations := range c.Paths {
		real := strings.NewReplacer("{stage}", "brief", "{seq}", "7").Replace(path)
		real = regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(real, "nobody")
		for method, operation := range operations {
			method = strings.ToUpper(method)
			refused := func(status int, a answer) {
				t.Helper()
				require.Equal(t, status, a.status, "%s %s: %s", method, path, a.body)
				c.answered(method, path, a)
				sent[status]++
			}
			refused(403, g.do(method, real, nil, header("Host", "elsewhere.example")))
			if path != "/healthz" {
				refused(401, locked.do(method, real, nil))
			}
			for _, other := range []string{"PUT", "PATCH", "POST", "DELETE", "GET"} {
				if operations[strings.ToLower(other)] == nil {
					a := g.do(other, real, nil)
					require.Contains(t, a.header.Get("Allow"), method)
					refused(405, a)
				}
			}
			if strings.HasPrefix(path, "/api/") || strings.HasSuffix(path, "z") {
				refused(422, g.do(method, real+"?nobody=knows", map[string]any{}))
			}
			if strings.Contains(path, "{") && method == "GET" {
				refused(404, g.do(method, real, nil))
			}
			if method == "GET" {
				continue
			}
			refused(403, g.do(method, real, map[string]any{}, header("Origin", "https://elsewhere.example")))
			refused(413, g.do(method, real, strings.Repeat(" ", 1<<20+1)))
			refused(422, g.do(method, real, `"`+"\xff"+`"`))
			never, writer := io.Pipe()
			refused(408, slow.do(method, real, never))
			require.NoError(t, writer.Close())
			if operation["requestBody"] == nil {
				if strings.Contains(path, "{") {
					refused(404, g.do(method, real, nil))
				}
				continue
			}
			refused(400, g.do(method, real, `{`))
			refused(415, g.do(method, real, `a,b`, header("Content-Type", "text/csv")))
			refused(422, g.do(method, real, map[string]any{"nobody": "knows"}))
		}
	}
	for _, status := range []int{400, 401, 403, 404, 405, 408, 413, 415, 422} {
		require.NotZero(t, sent[status], status)
	}
}

func TestRefusalsAreSentencesThatSayWhatBecameOfTheRequest(t *testing.T) {
	t.Parallel()
	g := start(t)
	thread, gone := g.create("Why?").ID, g.create("Why not?").ID
	at, run := "/api/v1/threads/"+thread, g.run(thread).ID
	g.do("DELETE", "/api/v1/threads/"+gone, nil).is(200, nil)
	for _, c := range []struct {
		method, path string
		body         any
		status       int
		code, detail string
	}{
		{"POST", "/api/v1/threads", `{"question":" "}`, 422, "invalid-question", "The question is empty. Nothing was changed."},
		{"POST", "/api/v1/threads", `{"question":"Why?","budget":-1}`, 422, "invalid-budget", "The budget is -1 credits; it must be between 0 and 1000000000. Nothing was changed."},
		{"POST", "/api/v1/threads", nil, 400, "malformed-request", "The request cannot be read: request body is required. Nothing was changed."},
		{"POST", "/api/v1/threads", strings.Repeat(" ", 1<<20+1), 413, "too-large", "The body is larger than 1048576 bytes. Nothing was changed; send a smaller one."},
		{"POST", "/api/v1/threads", `{"question":"` + "\xff" + `"}`, 422, "invalid-utf8", "The body is not valid UTF-8 (byte 13). Nothing was changed; send the text as UTF-8."},
		{"POST", "/api/v1/threads", `{"question":"\ud800"}`, 422, "invalid-utf8", "The body escapes half of a UTF-16 pair (byte 13), which is no character. Nothing was changed; send both halves, or the character itself."},
		{"PUT", "/api/v1/threads", nil, 405, "method-not-allowed", "/api/v1/threads takes GET, HEAD, POST, not PUT. Nothing was changed."},
		{"PATCH", at, `{"answer_budget":-1}`, 422, "invalid-answer-budget", "The answer budget is -1; it must not be negative (null takes the limit away). Nothing was changed."},
		{"GET", "/api/v1/threads/nobody", nil, 404, "not-found", `There is no thread "nobody". GET /api/v1/threads lists those that there are.`},
		{"POST", "/api/v1/threads/nobody/pause", nil, 404, "not-found", `There is no thread "nobody". The list of threads names those that there are.`},
		{"GET", "/api/v1/runs/nobody", nil, 404, "not-found", "There is nothing here by that id: it is mistyped, or what it named was deleted. The lists of a thread name what there is."},
		{"GET", "/api/v1/runs/" + run + "/report", nil, 404, "no-report", "The run has no report: it is requested. It has one when it has completed."},
		{"GET", at + "/brief", nil, 404, "no-brief", "The thread has no brief yet: it is written when the first cycle ends. Ask once, or start the thread."},
		{"GET", at + "/coverage", nil, 404, "no-coverage", "The thread has no map of topics yet: it is made when the first cycle ends. Ask once, or start the thread."},
		{"GET", at + "?as_of=2001-01-01", nil, 404, "not-found", "The thread was not there yet at 2001-01-01T00:00:00Z; created_at says since when it is."},
		{"GET", "/api/v1/events?after=x", nil, 422, "invalid-event-id", `Last-Event-ID is "x"; it must be the id of an event of this stream. Leave it out to hear what comes from now on.`},
		{"GET", "/api/v1/threads/" + gone, nil, 410, "thread-deleted", "The thread was deleted. Only what it cost is still known: 0 credits. To ask again, open a new thread."},
		{"POST", "/api/v1/threads/" + gone + "/start", nil, 410, "thread-deleted", "The thread was deleted. Only what it cost is still known: 0 credits. To ask again, open a new thread."},
	} {
		p := g.do(c.method, c.path, c.body).refused(c.status, c.code)
		require.Equal(t, c.detail, p["detail"])
	}
	// A client that names no kind of body, or curl, which names one by itself.
	for _, kind := range []string{"text/csv", "application/x-www-form-urlencoded"} {
		p := g.do("POST", "/api/v1/threads", `{"question":"Why?"}`, header("Content-Type", kind)).refused(415, "unsupported-media-type")
		require.Equal(t, "The body is not sent as JSON (unknown content type: "+kind+"). Nothing was changed; send JSON with the header Content-Type: application/json.", p["detail"])
	}
	// What the guard refuses says where to send it instead.
	for _, c := range []struct{ header, value, code, cure string }{
		{"Host", "elsewhere.example", "host-not-allowed", "Nothing was changed; send it to localhost or to the address of FACTSTREAM_HTTP, or set an access token (FACTSTREAM_TOKEN) to use other names."},
		{"Origin", "https://elsewhere.example", "cross-origin", "Nothing was changed; use this server's own page, or a program."},
	} {
		require.Contains(t, g.do("POST", "/api/v1/threads", `{"question":"Why?"}`, header(c.header, c.value)).refused(403, c.code)["detail"], c.cure)
	}
}

// Every code of a reason is told, in the description and in the contract between the services, with what it means.
func TestEveryCodeOfAReasonIsDescribed(t *testing.T) {
	t.Parallel()
	c := described(t, start(t))
	properties := c.Components.Schemas["Reason"]["properties"].(map[string]any)
	description := properties["code"].(map[string]any)["description"].(string)
	architecture, err := os.ReadFile("../../../docs/architecture.md")
	require.NoError(t, err)
	files, err := filepath.Glob("../../../shared/notebook/*.go")
	require.NoError(t, err)
	codes := map[string]bool{}
	for _, file := range files {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range regexp.MustCompile(`(?m)^(?:const|\t)\s*Reason\w+\s*= "(\w+)"`).FindAllStringSubmatch(string(source), -1) {
			codes[found[1]] = true
		}
	}
	require.Greater(t, len(codes), 14)
	for code := range codes {
		require.Contains(t, "; "+strings.TrimPrefix(description, "Stable; more may come. "), "; "+code+": ")
		require.Contains(t, string(architecture), "`"+code+"`")
	}
	require.Len(t, strings.Split(description, ": "), len(codes)+1, "and none that there is not")
}

func TestMetricsKeepTheConventions(t *testing.T) {
	t.Parallel()
	g := start(t)
	problems, err := promlint.New(strings.NewReader(string(g.do("GET", "/metrics", nil).body))).Lint()
	require.NoError(t, err)
	require.Empty(t, slices.DeleteFunc(problems, func(p promlint.Problem) bool { return !strings.HasPrefix(p.Metric, "factstream_") }))
}
