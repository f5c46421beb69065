package tabstack_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/factstream/factstream/fixtures"
	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/services/researcher/provider"
	"github.com/factstream/factstream/services/researcher/provider/providertest"
	"github.com/factstream/factstream/services/researcher/provider/tabstack"
	"github.com/factstream/factstream/shared/trail"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T, url string, change ...func(*tabstack.Config)) *tabstack.Client {
	t.Helper()
	config := tabstack.Config{BaseURL: url, Offline: true}
	for _, c := range change {
		c(&config)
	}
	p, err := tabstack.New(config)
	require.NoError(t, err)
	return p
}

func request() provider.Request {
	return provider.Request{Query: "What is it?", Key: providertest.Secret}
}

// call makes one call to a stand-in that gives one answer.
func call(t *testing.T, answer standin.Answer, change ...func(*tabstack.Config)) (provider.Result, *provider.Error, *standin.Server, *providertest.Recorder) {
	t.Helper()
	server := standin.Start(t, standin.Options{Then: answer})
	sink := new(providertest.Recorder)
	result, err := client(t, server.URL(), change...).Research(t.Context(), request(), sink)
	if err != nil {
		require.NotContains(t, err.Error(), providertest.Secret)
		require.NotNil(t, provider.AsError(err), "%v", err)
	}
	require.NoError(t, server.Await(t.Context(), func(s standin.Stats) bool { return s.InFlight == 0 }), "the connection is closed")
	return result, provider.AsError(err), server, sink
}

func TestConformance(t *testing.T) {
	t.Parallel()
	providertest.Run(t, providertest.Subject{
		Name: "tabstack",
		Serve: func(t *testing.T, stream []byte) provider.Provider {
			return client(t, standin.Start(t, standin.Options{Then: standin.Answer{Chunks: [][]byte{stream}}}).URL())
		},
		Hold: func(t *testing.T, stream []byte) provider.Provider {
			return client(t, standin.Start(t, standin.Options{Then: standin.Answer{Chunks: [][]byte{stream}, Fault: standin.Stall, After: 512}}).URL())
		},
	})
}

func TestTheCallAsItIsSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		req  provider.Request
		body string
	}{
		"only a question": {provider.Request{Query: "What is it?"}, `{"query":"What is it?"}`},
		"everything": {provider.Request{Query: "Größe <1 m> & \"so\"\n?", Mode: "balanced", Nocache: true, FetchTimeout: 1500 * time.Millisecond},
			`{"query":"Größe <1 m> & \"so\"\n?","mode":"balanced","nocache":true,"fetch_timeout":2}`},
		"the longest question": {provider.Request{Query: strings.Repeat("量", tabstack.MaxQuery)}, `{"query":"` + strings.Repeat("量", tabstack.MaxQuery) + `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := standin.Start(t, standin.Options{Key: "sk-1"})
			c.req.Key = "sk-1"
			_, err := client(t, server.URL()).Research(t.Context(), c.req, new(providertest.Recorder))
			require.NoError(t, err)
			sent := server.Calls()
			require.Len(t, sent, 1)
			require.Equal(t, http.MethodPost, sent[0].Method)
			require.Equal(t, "/v1/research", sent[0].Path)
			require.Equal(t, c.body, sent[0].Body)
			require.Equal(t, []string{"Bearer sk-1"}, sent[0].Header["Authorization"])
			require.Equal(t, []string{"text/event-stream"}, sent[0].Header["Accept"])
			require.Equal(t, []string{"application/json"}, sent[0].Header["Content-Type"])
		})
	}
}

func TestABaseURLMayHaveAPath(t *testing.T) {
	t.Parallel()
	var path string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { path = r.URL.Path }))
	defer server.Close()
	_, err := client(t, server.URL+"/proxy/").Research(t.Context(), request(), new(providertest.Recorder))
	require.ErrorIs(t, err, provider.CodeEmpty)
	require.Equal(t, "/proxy/v1/research", path)
}

func TestWhatTheProviderWouldRefuseIsNotSent(t *testing.T) {
	t.Parallel()
	server := standin.Start(t, standin.Options{})
	p := client(t, server.URL())
	for name, c := range map[string]struct {
		change func(*provider.Request)
		code   provider.Code
		park   string
	}{
		"no question":               {func(r *provider.Request) { r.Query = " \n" }, provider.CodeBadRequest, ""},
		"a question too long":       {func(r *provider.Request) { r.Query = strings.Repeat("x", tabstack.MaxQuery+1) }, provider.CodeBadRequest, ""},
		"a question of broken text": {func(r *provider.Request) { r.Query = "a\xff" }, provider.CodeBadRequest, ""},
		"no key":                    {func(r *provider.Request) { r.Key = "" }, provider.CodeAuth, provider.ParkNoKey},
		"a key with a line end":     {func(r *provider.Request) { r.Key = "k\r\nX: y" }, provider.CodeAuth, provider.ParkNoKey},
	} {
		req := request()
		c.change(&req)
		_, err := p.Research(t.Context(), req, new(providertest.Recorder))
		failure := provider.AsError(err)
		require.NotNil(t, failure, name)
		require.Equal(t, c.code, failure.Code, name)
		require.Equal(t, c.park, failure.Park, name)
		require.False(t, failure.Retryable, name)
		require.Contains(t, failure.Detail, "Nothing was sent", name)
	}
	require.Zero(t, server.Stats().Calls)
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	html := map[string]string{"Content-Type": "text/html"}
	for _, c := range []struct {
		name      string
		answer    standin.Answer
		code      provider.Code
		retryable bool
		after     time.Duration
		park      string
		says      string
	}{
		{"401", standin.Answer{Status: 401, Body: `{"error":"Unauthorized - Invalid token"}`}, provider.CodeAuth, false, 0, provider.ParkProvider, "401 Unauthorized: Unauthorized - Invalid token."},
		{"401 that repeats the key", standin.Answer{Status: 401, Body: `{"error":"unknown key ` + providertest.Secret + `"}`}, provider.CodeAuth, false, 0, provider.ParkProvider, "unknown key [key]"},
		{"402", standin.Answer{Status: 402, Body: `{"error":"No credits"}`}, provider.CodePaymentRequired, false, 0, provider.ParkProvider, "No credits"},
		{"403", standin.Answer{Status: 403}, provider.CodeAuth, false, 0, provider.ParkProvider, "403 Forbidden"},
		{"400", standin.Answer{Status: 400, Body: `{"error":{"message":"bad mode"}}`}, provider.CodeBadRequest, false, 0, "", "bad mode"},
		{"422", standin.Answer{Status: 422, Body: `{"error":"query is required"}`}, provider.CodeBadRequest, false, 0, "", "query is required"},
		{"429 in seconds", standin.Answer{Status: 429, Header: map[string]string{"Retry-After": "7"}, Body: `{"error":"Too many requests"}`}, provider.CodeRateLimited, true, 7 * time.Second, "", "wait 7s"},
		{"429 with a date", standin.Answer{Status: 429, Header: map[string]string{"Retry-After": "Fri, 01 May 2026 12:01:30 GMT"}}, provider.CodeRateLimited, true, 90 * time.Second, "", "wait 1m30s"},
		{"429 with a date that has passed", standin.Answer{Status: 429, Header: map[string]string{"Retry-After": "Fri, 01 May 2026 11:00:00 GMT"}}, provider.CodeRateLimited, true, 0, "", "asks to wait."},
		{"429 for a year", standin.Answer{Status: 429, Header: map[string]string{"Retry-After": "31536000"}}, provider.CodeRateLimited, true, provider.MaxRetryAfter, "", "1h"},
		{"429 without a time", standin.Answer{Status: 429}, provider.CodeRateLimited, true, 0, "", "asks to wait."},
		{"500 with a page of HTML", standin.Answer{Status: 500, Header: html, Body: "<!doctype html><title>Oh\n no</title><body>stack trace"}, provider.CodeServerError, true, 0, "", "500 Internal Server Error: Oh no."},
		{"503 with a time", standin.Answer{Status: 503, Header: map[string]string{"Retry-After": "5"}}, provider.CodeServerError, true, 5 * time.Second, "", "503"},
		{"404", standin.Answer{Status: 404, Body: "nothing here"}, provider.CodeHTTPError, false, 0, "", "nothing here. Check the base URL."},
		{"204", standin.Answer{Status: 204}, provider.CodeEmpty, false, 0, "", "empty"},
		{"200 without a body", standin.Answer{Header: html, Chunks: [][]byte{nil}}, provider.CodeEmpty, false, 0, "", "empty"},
		{"200 with JSON", standin.Answer{Header: map[string]string{"Content-Type": "application/json; charset=utf-8"}, Body: `{"error":"internal error"}`}, provider.CodeHTTPError, false, 0, "", "internal error"},
		{"200 with HTML", standin.Answer{Header: html, Body: "<html><p>Log in"}, provider.CodeHTTPError, false, 0, "", "not text/html"},
		{"a redirect elsewhere", standin.Answer{Status: 307, Header: map[string]string{"Location": "http://203.0.113.1/v1/research"}}, provider.CodeHTTPError, false, 0, "", "redirect is not followed"},
		{"a redirect on the same host", standin.Answer{Status: 308, Header: map[string]string{"Location": "/v1/research"}}, provider.CodeHTTPError, false, 0, "", "redirect is not followed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, failure, server, sink := call(t, c.answer, func(config *tabstack.Config) { config.Now = func() time.Time { return now } })
			require.NotNil(t, failure)
			require.Equal(t, c.code, failure.Code)
			require.Equal(t, c.retryable, failure.Retryable)
			require.Equal(t, c.after, failure.RetryAfter)
			require.Equal(t, c.park, failure.Park)
			require.Contains(t, failure.Detail, c.says)
			require.Contains(t, failure.Detail, "bill")
			require.NotContains(t, failure.Detail, "\n")
			require.NotZero(t, failure.Status)
			require.Empty(t, sink.Events())
			require.Equal(t, 1, server.Stats().Calls, "one call, whatever it brings")
			if c.answer.Status == 0 {
				require.Equal(t, c.answer.Body, string(sink.Kept()), "what may have been paid is kept")
			}
		})
	}
}

func TestVectorsOverTheWire(t *testing.T) {
	t.Parallel()
	vectors, err := fixtures.Vectors()
	require.NoError(t, err)
	ran := 0
	for _, v := range vectors {
		if v.Layer == fixtures.LayerSSE || strings.HasPrefix(v.ID, "app-openai") {
			continue
		}
		ran++
		t.Run(v.ID, func(t *testing.T) {
			t.Parallel()
			answer := standin.Answer{Status: v.Status, Header: v.Headers, Chunks: v.Chunks, Delay: 2 * time.Millisecond}
			switch v.End {
			case "reset":
				answer.Fault, answer.After = standin.Close, len(v.Bytes())
			case "stall":
				answer.Fault, answer.After = standin.Stall, len(v.Bytes())
			}
			result, failure, _, sink := call(t, answer, func(c *tabstack.Config) {
				if v.End == "stall" {
					c.IdleTimeout = time.Second
				}
			})
			got := "complete"
			switch {
			case failure != nil:
				got = string(failure.Code)
			case len(result.Warnings) > 0:
				got = "complete+warning"
			}
			require.Equal(t, v.App, got, v.Note)
			for i, e := range sink.Events() {
				if i < len(v.Expect) {
					require.Equal(t, v.Expect[i].Event, e.Name)
					require.Equal(t, *v.Expect[i].Data, string(e.Data))
				}
			}
			if v.ID == "app-nonjson" {
				require.Contains(t, failure.Detail, "upstream connect error or disconnect/reset before headers")
				require.JSONEq(t, `{"raw":"upstream connect error or disconnect/reset before headers"}`, string(trail.New(2, "", time.Time{}, sink.Events()[1].Data).Data))
			}
		})
	}
	require.Equal(t, 22, ran)
}

func TestACutStream(t *testing.T) {
	t.Parallel()
	whole, err := fixtures.Stream("tabstack", "fast")
	require.NoError(t, err)
	for _, fault := range []standin.Fault{standin.Close, standin.Reset, standin.End} {
		for _, after := range []int{0, 60, 1000, len(whole) - 3} {
			t.Run(fmt.Sprintf("%s after %d", fault, after), func(t *testing.T) {
				t.Parallel()
				_, failure, _, sink := call(t, standin.Answer{Fault: fault, After: after})
				require.NotNil(t, failure)
				if after == 0 && fault == standin.Reset && failure.Code == provider.CodeTransport {
					return // the reset may overtake the head of the answer
				}
				require.Equal(t, provider.CodeTruncated, failure.Code)
				require.True(t, failure.Retryable)
				require.Contains(t, failure.Detail, "may still bill")
				require.Equal(t, string(whole[:len(sink.Kept())]), string(sink.Kept()))
			})
		}
		t.Run(fmt.Sprintf("%s when only the blank line lacks", fault), func(t *testing.T) {
			t.Parallel()
			result, failure, _, _ := call(t, standin.Answer{Fault: fault, After: len(whole) - 2, Gate: closed()})
			require.Nil(t, failure)
			require.Len(t, result.Warnings, 1, "a paid report is not thrown away")
		})
	}
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func TestNoConnectionIsATransportFailure(t *testing.T) {
	t.Parallel()
	const nobody = "http://127.0.0.1:1" // a port that was free a moment ago may be another's
	_, err := client(t, nobody).Research(t.Context(), request(), new(providertest.Recorder))
	failure := provider.AsError(err)
	require.NotNil(t, failure)
	require.Equal(t, provider.CodeTransport, failure.Code)
	require.True(t, failure.Retryable)
	require.Contains(t, failure.Detail, "Nothing was sent")

	_, failure, _, _ = call(t, standin.Answer{Fault: standin.Drop})
	require.Equal(t, provider.CodeTransport, failure.Code)
	require.True(t, failure.Retryable)
	require.Contains(t, failure.Detail, "may still bill", "the request may have arrived")
}

func TestEveryKindOfSilence(t *testing.T) {
	t.Parallel()
	// What must run out is short; what must not, on a machine that is busy, is long.
	const short, long = 40 * time.Millisecond, 2 * time.Second
	whole, err := fixtures.Stream("tabstack", "fast")
	require.NoError(t, err)
	for _, c := range []struct {
		name   string
		answer standin.Answer
		change func(*tabstack.Config)
		code   provider.Code
	}{
		{"no first byte", standin.Answer{Before: time.Hour}, func(c *tabstack.Config) { c.FirstByteTimeout = long / 2 }, provider.CodeStall},
		{"no byte after the head", standin.Answer{Fault: standin.Stall}, func(c *tabstack.Config) { c.IdleTimeout = short }, provider.CodeStall},
		{"no byte after some", standin.Answer{Fault: standin.Stall, After: 500}, func(c *tabstack.Config) { c.IdleTimeout = short }, provider.CodeStall},
		{"the first byte's time is over with the head", standin.Answer{Piece: 4000, Delay: 3 * long / 2}, func(c *tabstack.Config) { c.FirstByteTimeout = long }, ""},
		{"comments are signs of life", standin.Answer{Delay: long / 4, Chunks: [][]byte{[]byte(":\n"), []byte(":\n"), []byte(":\n"), []byte(":\n"), []byte(":\n"), whole}}, func(c *tabstack.Config) { c.IdleTimeout = long }, ""},
		{"comments without end", standin.Answer{Delay: short / 4, Chunks: comments(1000)}, func(c *tabstack.Config) { c.CallTimeout = long / 2 }, provider.CodeTimeout},
		{"complete without its blank line, then nothing", standin.Answer{Fault: standin.Stall, After: len(whole) - 1}, func(c *tabstack.Config) { c.IdleTimeout = long }, ""},
		{"complete, and the connection stays open", standin.Answer{Fault: standin.Stall, After: len(whole)}, func(*tabstack.Config) {}, ""},
		{"a silent error page", standin.Answer{Status: 500, Body: "{", Fault: standin.Stall, After: 1}, func(c *tabstack.Config) { c.IdleTimeout = long / 2 }, provider.CodeServerError},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, failure, _, _ := call(t, c.answer, c.change)
			if c.code == "" {
				require.Nil(t, failure)
				return
			}
			require.NotNil(t, failure)
			require.Equal(t, c.code, failure.Code)
			require.Equal(t, c.code != provider.CodeTimeout, failure.Retryable)
			require.Contains(t, failure.Detail, "may still bill")
		})
	}
}

func comments(n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = []byte(": alive\n")
	}
	return out
}

func TestAConnectionThatIsNotMadeInTime(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	never := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		<-over
		return nil, errors.New("too late")
	}}}
	p := client(t, "http://127.0.0.1:1", func(c *tabstack.Config) { c.Client, c.ConnectTimeout = never, 20*time.Millisecond })
	_, err := p.Research(t.Context(), request(), new(providertest.Recorder))
	failure := provider.AsError(err)
	require.NotNil(t, failure)
	require.Equal(t, provider.CodeTransport, failure.Code)
	require.True(t, failure.Retryable)
	require.Contains(t, failure.Detail, "Nothing was sent")
}

// Time that the sink takes is not silence of the provider.
func TestASlowSinkIsNoStall(t *testing.T) {
	t.Parallel()
	server := standin.Start(t, standin.Options{})
	const idle = time.Second
	sink := &providertest.Recorder{EventError: func(before int) error {
		if before == 1 {
			<-time.After(2 * idle)
		}
		return nil
	}}
	_, err := client(t, server.URL(), func(c *tabstack.Config) { c.IdleTimeout = idle }).Research(t.Context(), request(), sink)
	require.NoError(t, err)
}

func TestCancelClosesTheSocket(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]standin.Answer{
		"before the answer": {Before: time.Hour},
		"in the stream":     {Fault: standin.Stall, After: 500},
		"in an error page":  {Status: 500, Body: "{", Fault: standin.Stall, After: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := standin.Start(t, standin.Options{Then: answer})
			ctx, cancel := context.WithCancelCause(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := client(t, server.URL()).Research(ctx, request(), new(providertest.Recorder))
				ended <- err
			}()
			require.NoError(t, server.Await(t.Context(), func(s standin.Stats) bool { return s.Calls == 1 && s.Bytes == int64(answer.After) }))
			why := errors.New("run cancelled")
			cancel(why)
			err := <-ended
			require.ErrorIs(t, err, provider.CodeCancelled)
			require.ErrorIs(t, err, why)
			require.Contains(t, err.Error(), "may still bill")
			require.NoError(t, server.Await(t.Context(), func(s standin.Stats) bool { return s.Left == 1 && s.InFlight == 0 }))
		})
	}
}

func TestOnlyLoopbackOffline(t *testing.T) {
	t.Parallel()
	for _, far := range []string{"", "https://api.example.com", "http://203.0.113.7", "http://localhost.example.com", "http://10.0.0.1:80", "http://[2001:db8::1]"} {
		_, err := tabstack.New(tabstack.Config{BaseURL: far, Offline: true})
		require.ErrorIs(t, err, tabstack.ErrOffline, far)
		_, err = tabstack.New(tabstack.Config{BaseURL: far})
		require.NoError(t, err, far)
	}
	for _, near := range []string{"http://127.0.0.1:8080", "http://127.8.9.1", "http://localhost", "http://LOCALHOST:1", "http://[::1]:8080"} {
		_, err := tabstack.New(tabstack.Config{BaseURL: near, Offline: true})
		require.NoError(t, err, near)
	}
}

func TestABaseURLThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"api.example.com", "ftp://example.com", "http://", "http://user:pa55@example.com", "http://example.com?x=1", "http://example.com#x", "http://pa55:%zz@x"} {
		_, err := tabstack.New(tabstack.Config{BaseURL: bad})
		require.ErrorIs(t, err, tabstack.ErrBaseURL, bad)
		require.NotContains(t, err.Error(), "pa55")
	}
}
