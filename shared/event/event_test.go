package event_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/event"
)

var at = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)

// fill gives every field a value, so that nothing is left out by omitempty.
func fill(v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(at))
		return
	case json.RawMessage:
		v.SetBytes([]byte(`{"tokens":3}`))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("<b>ü</b>")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Float64:
		v.SetFloat(0.25)
	case reflect.Bool:
		v.SetBool(true)
	}
}

func full(t *testing.T, typ string) event.Event {
	t.Helper()
	p, ok := event.New(typ)
	require.True(t, ok)
	fill(reflect.ValueOf(p).Elem())
	data := reflect.ValueOf(p).Elem().Interface().(event.Data)
	return event.Event{ID: "e1", Type: typ, Time: at, Thread: "t1", Run: "r1", Cause: "e0", N: 2, Entity: "r1", Data: data}
}

func TestEveryTypeSurvivesTheWireAndObeysItsSchema(t *testing.T) {
	t.Parallel()
	require.Len(t, event.Types(), 24)
	for _, typ := range event.Types() {
		t.Run(typ, func(t *testing.T) {
			t.Parallel()
			e := full(t, typ)
			body, err := event.Marshal(e)
			require.NoError(t, err)
			require.Len(t, strings.Split(e.Subject(), "."), 5)
			again, err := event.Parse(e.Subject(), body)
			require.NoError(t, err)
			require.Equal(t, e, again)

			raw, err := event.Schema(typ)
			require.NoError(t, err)
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
			require.NoError(t, err)
			c := jsonschema.NewCompiler()
			require.NoError(t, c.AddResource("schema.json", doc))
			schema, err := c.Compile("schema.json")
			require.NoError(t, err)
			var envelope struct{ Data any }
			require.NoError(t, json.Unmarshal(body, &envelope))
			require.NoError(t, schema.Validate(envelope.Data))
			if object := envelope.Data.(map[string]any); len(object) > 0 {
				require.Error(t, schema.Validate([]any{}), "a schema that takes anything proves nothing")
				object["added_later"] = true
				require.NoError(t, schema.Validate(object), "fields are only added: readers let unknown ones pass")
			}
		})
	}
}

func TestSchemasAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "go", "run", "./schemagen", dir).CombinedOutput()
	require.NoError(t, err, string(out))
	made, err := filepath.Glob(filepath.Join(dir, "*.json"))
	require.NoError(t, err)
	kept, err := filepath.Glob("*.schema.json")
	require.NoError(t, err)
	require.Len(t, kept, len(made))
	for _, path := range made {
		want, err := os.ReadFile(path)
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Base(path))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got), "run go generate in shared/event")
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	good := `{"id":"e1","type":"factstream.thread.paused.v1","time":"2026-01-01T00:00:00Z","thread":"t1","n":0,"data":{"reason":{"code":"paused","text":"x"},"new":1}}`
	cases := []struct {
		name, subject, body string
		kind                string // empty: malformed
		unknown             bool
	}{
		{"with a field that is not known yet", "thread.paused.t1.0.0", good, "thread.paused", false},
		{"another version", "thread.paused.t1.0.0", strings.Replace(good, ".v1", ".v9", 1), "thread.paused", true},
		{"another family", "weather.changed.t1.0.0", strings.Replace(good, "factstream.thread.paused", "factstream.weather.changed", 1), "weather.changed", true},
		{"someone's own, with any body of JSON", "ext.note.t1.abc.4", `{"hello":"world"}`, "ext.note", true},
		{"four tokens", "thread.paused.t1.0", good, "", false},
		{"no number", "thread.paused.t1.0.x", good, "", false},
		{"another thread", "thread.paused.t2.0.0", good, "", false},
		{"another n", "thread.paused.t1.0.1", good, "", false},
		{"no id", "thread.paused.t1.0.0", strings.Replace(good, `"id":"e1",`, "", 1), "", false},
		{"no JSON", "thread.paused.t1.0.0", "hello", "", false},
		{"empty", "thread.paused.t1.0.0", "", "", false},
		{"data of another form", "thread.paused.t1.0.0", strings.Replace(good, `{"reason":{"code":"paused","text":"x"},"new":1}`, `[1]`, 1), "", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e, err := event.Parse(c.subject, []byte(c.body))
			if c.kind == "" {
				require.ErrorIs(t, err, event.ErrMalformed)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.kind, e.Kind())
			_, unknown := e.Data.(event.Unknown)
			require.Equal(t, c.unknown, unknown)
		})
	}
}

// Nearly every body is read in one pass; whatever is not plainly an event of the newest version is looked at again.
func TestTheOrderOfFieldsDoesNotMatterAndDataMustBeThere(t *testing.T) {
	t.Parallel()
	const subject = "thread.archived.t.0.0"
	const head = `"id":"e","type":"factstream.thread.archived.v1","time":"2026-02-03T04:05:06Z","thread":"t","n":0`
	want := event.Event{ID: "e", Type: "factstream.thread.archived.v1", Time: at, Thread: "t", Entity: "0", Data: event.ThreadArchived{Archived: true}}
	for _, body := range []string{`{` + head + `,"data":{"archived":true}}`, `{"data":{"archived":true},` + head + `}`, `{"more":[1],"data":{"archived":true,"more":{}},` + head + `}`} {
		e, err := event.Parse(subject, []byte(body))
		require.NoError(t, err, body)
		require.Equal(t, want, e, body)
	}
	want.Data = event.ThreadArchived{}
	for _, data := range []string{`{}`, `null`, `{"archived":false}`} {
		e, err := event.Parse(subject, []byte(`{`+head+`,"data":`+data+`}`))
		require.NoError(t, err, data)
		require.Equal(t, want, e, data)
	}
	for _, body := range []string{`{` + head + `}`, `{` + head + `,"data":7}`, `{` + head + `,"data":{"archived":"yes"}}`, `{` + head + `,"data":{"archived":true}} x`} {
		_, err := event.Parse(subject, []byte(body))
		require.ErrorIs(t, err, event.ErrMalformed, body)
	}
	e, err := event.Parse(subject, []byte(`{`+strings.Replace(head, ".v1", ".v99", 1)+`,"data":{"archived":true}}`))
	require.NoError(t, err)
	require.IsType(t, event.Unknown{}, e.Data)
}

// What docs/consumers.md shows as a body is one, whole: writers of other programs take it for what there is.
func TestTheDocumentedEventIsWhole(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/consumers.md")
	require.NoError(t, err)
	_, shown, found := bytes.Cut(page, []byte("```json\n"))
	require.True(t, found)
	shown, _, _ = bytes.Cut(shown, []byte("```"))
	var ids struct{ Thread, Run string }
	require.NoError(t, json.Unmarshal(shown, &ids))
	e, err := event.Parse("run.requested."+ids.Thread+"."+ids.Run+".0", shown)
	require.NoError(t, err)
	require.IsType(t, event.RunRequested{}, e.Data)
	body, err := event.Marshal(e)
	require.NoError(t, err)
	require.JSONEq(t, string(body), string(shown))
}

func BenchmarkParse(b *testing.B) {
	e := event.Event{ID: "e", Time: at, Thread: "t", Entity: "r", Data: event.RunCompleted{
		Report: event.Blob{Text: strings.Repeat("A report has some thousand signs, and \"quotes\".\n", 400)},
	}}
	body, err := event.Marshal(e)
	require.NoError(b, err)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := event.Parse("run.completed.t.r.0", body); err != nil {
			b.Fatal(err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("thread.paused.t1.0.0", []byte(`{"id":"e1","type":"factstream.thread.paused.v1","time":"2026-01-01T00:00:00Z","thread":"t1","n":0,"data":{}}`))
	f.Add("ext.a.b.c.1", []byte(`{}`))
	f.Fuzz(func(t *testing.T, subject string, body []byte) {
		e, err := event.Parse(subject, body)
		if err != nil {
			return
		}
		if _, unknown := e.Data.(event.Unknown); unknown {
			return
		}
		again, err := event.Marshal(e)
		require.NoError(t, err)
		parsed, err := event.Parse(subject, again)
		require.NoError(t, err)
		require.Equal(t, e.Subject(), parsed.Subject())
	})
}
