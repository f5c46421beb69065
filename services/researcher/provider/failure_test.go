package provider_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures"
	"github.com/factstream/factstream/services/researcher/provider"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func TestAFailureIsFoundByItsCodeAndItsCause(t *testing.T) {
	t.Parallel()
	cause := errors.New("reset by peer")
	err := fmt.Errorf("run 7: %w", &provider.Error{Provider: "tabstack", Code: provider.CodeTruncated, Detail: "It ended.", Err: cause})
	require.ErrorIs(t, err, provider.CodeTruncated)
	require.NotErrorIs(t, err, provider.CodeStall)
	require.ErrorIs(t, err, cause)
	require.Equal(t, "run 7: tabstack: truncated: It ended.", err.Error())
	require.Equal(t, provider.CodeTruncated, provider.AsError(err).Code)
	require.Nil(t, provider.AsError(cause))
	require.Nil(t, provider.AsError(nil))
}

func TestHTTPVectorsOfEveryProvider(t *testing.T) {
	t.Parallel()
	vectors, err := fixtures.Vectors()
	require.NoError(t, err)
	for _, v := range vectors {
		if v.Layer != fixtures.LayerHTTP || len(v.Expect) > 0 {
			continue
		}
		header := http.Header{}
		for k, value := range v.Headers {
			header.Set(k, value)
		}
		failure := provider.FromStatus("some", v.Status, header, v.Bytes(), now, "")
		require.Equal(t, v.App, string(failure.Code), v.ID)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		header map[string]string
		want   time.Duration
	}{
		{"nothing", nil, 0},
		{"seconds", map[string]string{"Retry-After": " 3 "}, 3 * time.Second},
		{"a part of a second", map[string]string{"Retry-After": "0.25"}, 250 * time.Millisecond},
		{"milliseconds are more exact", map[string]string{"Retry-After": "3", "retry-after-ms": "2500"}, 2500 * time.Millisecond},
		{"a date", map[string]string{"Retry-After": "Fri, 01 May 2026 12:00:10 GMT"}, 10 * time.Second},
		{"a date that has passed", map[string]string{"Retry-After": "Fri, 01 May 2026 11:00:10 GMT"}, 0},
		{"below zero", map[string]string{"Retry-After": "-3"}, 0},
		{"too long", map[string]string{"Retry-After": "1e300"}, provider.MaxRetryAfter},
		{"no number", map[string]string{"Retry-After": "NaN"}, 0},
		{"words", map[string]string{"Retry-After": "soon"}, 0},
		{"windows, none used up", map[string]string{"X-RateLimit-Reset": "1, 1419704", "X-RateLimit-Remaining": "1, 14523"}, time.Second},
		{"windows, the short one used up", map[string]string{"X-RateLimit-Reset": "2, 1419704", "X-RateLimit-Remaining": "0, 14523"}, 2 * time.Second},
		{"windows, the long one used up", map[string]string{"X-RateLimit-Reset": "1, 1419704", "X-RateLimit-Remaining": "1, 0"}, provider.MaxRetryAfter},
		{"windows without what remains", map[string]string{"X-RateLimit-Reset": "1, 1419704"}, time.Second},
		{"Retry-After before the windows", map[string]string{"Retry-After": "5", "X-RateLimit-Reset": "1, 2"}, 5 * time.Second},
	} {
		header := http.Header{}
		for k, v := range c.header {
			header.Set(k, v)
		}
		require.Equal(t, c.want, provider.RetryAfter(header, now), c.name)
	}
}

func TestExcerpt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, body, want string }{
		{"application/json", `{"error":"flat"}`, "flat"},
		{"application/json", `{"error":{"message":"nested"}}`, "nested"},
		{"application/json", `{"error":{"code":"X","detail":"detail"}}`, "detail"},
		{"application/json", `{"errors":[{"detail":"first"},{"detail":"second"}]}`, "first"},
		{"application/json", `{"errors":["first","second"]}`, "first"},
		{"application/problem+json", `{"title":"Title","detail":"Detail"}`, "Detail"},
		{"", `{"error":null,"message":"fallback"}`, "fallback"},
		{"application/json", `[1]`, "[1]"},
		{"text/html; charset=utf-8", "<html><TITLE>\n 502 Bad\tGateway </TITLE><body>x", "502 Bad Gateway"},
		{"text/html", "<p>no title", ""},
		{"", "  <!doctype html>", ""},
		{"text/plain", "several\r\nlines \x1b[31mred\x00", "several lines [31mred"},
		{"text/plain", strings.Repeat("ü", 200), strings.Repeat("ü", 98) + "…"},
		{"", "", ""},
	} {
		require.Equal(t, c.want, provider.Excerpt(c.kind, []byte(c.body)), c.body)
	}
}

func TestNoPartOfTheKeyIsShown(t *testing.T) {
	t.Parallel()
	const key = "sk-0123456789abcdef"
	body := `{"error":"` + strings.Repeat("x", 190) + key + `"}` // would be cut inside the key
	failure := provider.FromStatus("some", 400, http.Header{}, []byte(body), now, key)
	require.NotContains(t, failure.Error(), "sk-")
}

func FuzzExcerpt(f *testing.F) {
	f.Add("application/json", []byte(`{"error":{"errors":[{"message":"x"}]}}`))
	f.Add("text/html", []byte("<title>x</title>"))
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		got := provider.Excerpt(kind, body)
		require.True(t, utf8.ValidString(got))
		require.LessOrEqual(t, len(got), 200)
		require.NotContains(t, got, "\n")
		failure := provider.FromStatus("some", 500, http.Header{"Content-Type": {kind}, "Retry-After": {kind}}, body, now, "")
		require.GreaterOrEqual(t, failure.RetryAfter, time.Duration(0))
		require.LessOrEqual(t, failure.RetryAfter, provider.MaxRetryAfter)
	})
}
