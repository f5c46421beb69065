package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/stretchr/testify/require"
)

// contract is the OpenAPI document, against which answers are held.
type contract struct {
	t          *testing.T
	Paths      map[string]map[string]map[string]any `json:"paths"`
	Components struct {
		Schemas map[string]map[string]any `json:"schemas"`
	} `json:"components"`
}

// answered holds an answer against what the document says of it.
func (c contract) answered(method, path string, a answer) {
	c.t.Helper()
	operation := c.Paths[path][strings.ToLower(method)]
	require.NotNil(c.t, operation, "%s %s is not described", method, path)
	response, declared := operation["responses"].(map[string]any)[fmt.Sprint(a.status)].(map[string]any)
	require.True(c.t, declared, "%s %s does not declare %d", method, path, a.status)
	kind, _, _ := strings.Cut(a.header.Get("Content-Type"), ";")
	media, declared := response["content"].(map[string]any)[kind].(map[string]any)
	require.True(c.t, declared, "%s %s does not declare %s for %d", method, path, kind, a.status)
	var value any
	require.NoError(c.t, json.Unmarshal(a.body, &value))
	require.NoError(c.t, c.fits(value, media["schema"].(map[string]any), method+" "+path))
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
	c := contract{t: t}
	g.do("GET", "/openapi.json", nil).is(200, &c)
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
	for _, path := range []string{"/healthz", "/readyz"} {
		c.answered("GET", path, g.do("GET", path, nil))
	}
}

func TestRefusalsAreSentencesThatSayWhatBecameOfTheRequest(t *testing.T) {
	t.Parallel()
	g := start(t)
	for _, c := range []struct {
		method, path string
		body         any
		status       int
		code, detail string
	}{
		{"POST", "/api/v1/threads", `{"question":" "}`, 422, "invalid-question", "The question is empty. Nothing was changed."},
		{"POST", "/api/v1/threads", `{"question":"Why?","budget":-1}`, 422, "invalid-budget", "The budget is -1 credits; it must be between 0 and 1000000000. Nothing was changed."},
		{"POST", "/api/v1/threads", nil, 400, "malformed-request", "The request cannot be read: request body is required. Nothing was changed."},
	} {
		p := g.do(c.method, c.path, c.body).refused(c.status, c.code)
		require.Equal(t, c.detail, p["detail"])
	}
}

func TestMetricsKeepTheConventions(t *testing.T) {
	t.Parallel()
	g := start(t)
	problems, err := promlint.New(strings.NewReader(string(g.do("GET", "/metrics", nil).body))).Lint()
	require.NoError(t, err)
	require.Empty(t, slices.DeleteFunc(problems, func(p promlint.Problem) bool { return !strings.HasPrefix(p.Metric, "factstream_") }))
}
