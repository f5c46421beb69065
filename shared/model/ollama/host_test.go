package ollama

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseHost(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                           "http://127.0.0.1:11434",
		"  ":                         "http://127.0.0.1:11434",
		"127.0.0.1":                  "http://127.0.0.1:11434",
		"localhost:8000":             "http://localhost:8000",
		":8000":                      "http://127.0.0.1:8000",
		"0.0.0.0":                    "http://127.0.0.1:11434",
		"0.0.0.0:8000":               "http://127.0.0.1:8000",
		"[::]:8000":                  "http://127.0.0.1:8000",
		"::1":                        "http://[::1]:11434",
		"[::1]:8000":                 "http://[::1]:8000",
		"gpu.example":                "http://gpu.example:11434",
		"http://gpu.example":         "http://gpu.example:80",
		"HTTPS://gpu.example":        "https://gpu.example:443",
		"https://gpu.example:1/a/b/": "https://gpu.example:1/a/b",
		`"127.0.0.1:1"`:              "http://127.0.0.1:1",
	} {
		u, err := ParseHost(in)
		require.NoError(t, err, in)
		require.Equal(t, want, u.JoinPath("api").String()[:len(u.JoinPath("api").String())-len("/api")], in)
	}
	for _, in := range []string{"ftp://x", "unix:///x", "a:b:c", "host:0", "host:70000", "host:x", "user:pw@host", "host name", "http://h?x=1", "http://h/a#b", "a\x19b", "a%20b"} {
		_, err := ParseHost(in)
		require.Error(t, err, in)
	}
}

func FuzzParseHost(f *testing.F) {
	for _, s := range []string{"", "127.0.0.1", "[::1]:8000", "https://a/b", ":1", "%", "[", "http://"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		u, err := ParseHost(s)
		if err != nil {
			return
		}
		again, err := url.Parse(u.JoinPath("api", "chat").String())
		require.NoError(t, err)
		require.NotEmpty(t, again.Hostname())
		require.NotEmpty(t, again.Port())
		require.Nil(t, again.User)
	})
}
