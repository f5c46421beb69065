package text

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestCanonicalURLFoldsSpellingsOfOnePage(t *testing.T) {
	t.Parallel()
	for want, spellings := range map[string][]string{
		"https://example.org/ssb/roadmap": {
			"https://example.org/ssb/roadmap", "http://example.org/ssb/roadmap/", "HTTPS://WWW.Example.ORG:443/ssb/roadmap//",
			"http://www.example.org:80/ssb/roadmap#plan", " https://example.org./ssb/./x/../roadmap?utm_source=a&UTM_Medium=b ",
			"https://user:secret@example.org/ssb/roadmap?", "https://example.org/ssb/road%6Dap?fbclid=1&gclid=2&&utm%5Fid=3",
			`https://example.org\ssb\roadmap`, "https://%65xample.org/ssb/roadmap", "http://www.www.example.org:443/ssb/roadmap",
		},
		"https://example.org":                      {"http://example.org", "https://www.example.org/", "https://example.org/?#"},
		"https://example.com/Cars?id=4711&lang=en": {"https://www.example.com/Cars?id=4711&lang=en#specs", "https://example.com/Cars/?id=4711&mc_cid=9&lang=en"},
		"https://example.com?b=1&a=2":              {"https://example.com/?b=1&a=2"},
		"https://example.com/?":                    {},
		"https://lab.example.edu/pr%C3%BCf":        {"https://lab.example.edu/pr%c3%bcf", "https://lab.example.edu/prüf"},
		"https://xn--bcher-kva.example/a":          {"https://Bücher.example/a", "https://BÜCHER.example/a", "https://xn--bcher-kva.example/a"},
		"https://example.jp/%E8%A8%98":             {"https://example.jp/記"},
		"https://example.org:8080/a":               {"http://example.org:08080/a"},
		"https://[2001:db8::1]:8080/a":             {"https://[2001:DB8:0::1]:8080/a/"},
		"https://127.0.0.1:9000/x":                 {"http://127.0.0.1:9000/x"},
		"https://localhost/x":                      {"http://localhost/x"},
		"https://www.com/x":                        {"https://www.com/x"},
		"https://a_b.example/x":                    {"https://a_b.example/x"},
		"https://example.org/a%2Fb":                {"https://example.org/a%2fb"},
		"https://example.org/a%20b%25%5B":          {"https://example.org/a b%[", "https://example.org/a%20b%25%5b"},
		"https://example.org/a//b":                 {"https://example.org/a//b"},
		"https://example.org/b":                    {"https://example.org/../../b", "https://example.org/a/%2E%2e/b"},
		"https://example.org/a?q=%C3%BC+x&r=a%26b": {"https://example.org/a?q=ü+x&r=a%26b"},
		"https://example.org/a?u=https://b.c/?d=e": {"https://example.org/a?u=https://b.c/?d=e"},
		"https://example.org/a?ref=b":              {"https://example.org/a?ref=b"},
	} {
		for _, raw := range spellings {
			got, err := CanonicalURL(raw)
			require.NoError(t, err, raw)
			assert.Equal(t, want, got, raw)
		}
	}
}

func TestCanonicalURLKeepsPagesApart(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, raw := range []string{
		"https://example.org/a", "https://example.org/A", "https://example.org/a?b=1&c=2", "https://example.org/a?c=2&b=1",
		"https://example.org/a?b=1", "https://example.org/a?b=", "https://example.org/a?b", "https://m.example.org/a",
		"https://example.org:8080/a", "https://example.org/a%2Fb", "https://example.org/a/b", "https://example.org/a%2523",
		"https://example.org/a%23",
	} {
		got, err := CanonicalURL(raw)
		require.NoError(t, err)
		assert.Empty(t, seen[got], "%s is taken for %s", raw, seen[got])
		seen[got] = raw
	}
}

func TestCanonicalURLRefuses(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]error{
		"":                                ErrScheme,
		"javascript:alert(1)":             ErrScheme,
		"javascript://example.org/%0Ax":   ErrScheme,
		"data:text/html,x":                ErrScheme,
		"file:///etc/passwd":              ErrScheme,
		"ftp://example.org/a":             ErrScheme,
		"mailto:a@example.org":            ErrScheme,
		"//example.org/a":                 ErrScheme,
		"example.org/a":                   ErrScheme,
		"/a":                              ErrScheme,
		"https:example.org":               ErrScheme,
		"https://":                        ErrHost,
		"https:///a":                      ErrHost,
		"https://user@/a":                 ErrHost,
		"https://exa mple.org/":           ErrHost,
		"https://exa%00mple.org/":         ErrHost,
		"https://a..b/":                   ErrHost,
		"https://example.org:0/":          ErrHost,
		"https://example.org:99999/":      ErrHost,
		"https://example.org:x/":          ErrHost,
		"https://[::1/":                   ErrHost,
		"https://[fe80::1%25eth0]/":       ErrHost,
		"https://[127.0.0.1]/":            ErrHost,
		"https://good.example\\@evil.x:y": nil, // the backslash ends the host, as in browsers
		"https://example.org/a\nb":        ErrURL,
		"https://example.org/\x00":        ErrURL,
		"https://" + strings.Repeat("a.", 200) + "org": ErrHost,
	} {
		got, err := CanonicalURL(raw)
		if want == nil {
			require.NoError(t, err, raw)
			assert.Equal(t, "https://good.example/@evil.x:y", got)
			continue
		}
		assert.ErrorIs(t, err, want, raw)
		assert.Empty(t, got)
		assert.Empty(t, Site(raw))
	}
}

func TestSiteIsTheRegistrableDomain(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"https://news.bbc.co.uk/a":   "bbc.co.uk",
		"http://www.example.com:81/": "example.com",
		"https://user.github.io/x":   "user.github.io",
		"https://github.io/x":        "github.io",
		"https://a.b.例え.jp/":         "xn--r8jz45g.jp",
		"https://127.0.0.1:80/a":     "127.0.0.1",
		"https://[::1]:8080?a":       "::1",
		"http://localhost/":          "localhost",
		"nonsense":                   "",
	} {
		assert.Equal(t, want, Site(raw), raw)
	}
}

func FuzzCanonicalURL(f *testing.F) {
	for _, s := range []string{
		"http://www.Example.org:80/a/../b//?utm_x=1&q=%41%zz#f", "https://[::1]:80/%2e/", "https://Bü\u00adcher。example/", "http://a%2eb/",
		"https://u:p@h/?&&=&a", "https://xn--/", "http://0x7f.1/", "https://ß.example", "https://www.www.com",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, err := CanonicalURL(raw)
		if err != nil {
			return
		}
		again, err := CanonicalURL(got)
		require.NoError(t, err, got)
		require.Equal(t, got, again, "idempotent")
		u, err := url.Parse(got)
		require.NoError(t, err)
		require.Equal(t, "https", u.Scheme)
		require.NotEmpty(t, u.Host)
		require.Nil(t, u.User)
		require.Empty(t, u.Fragment)
		require.NotEmpty(t, Site(got))
	})
}

func FuzzParseDate(f *testing.F) {
	for _, s := range []string{"2024-03-05T10:20:30+02:00", "5. März 2024", "Tue, 05 Mar 2024 10:00 PM", "2024年3月5日 10:00", "1709632800.5", "03/25/2024"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, precision, ok := ParseDate(in)
		if !ok {
			require.True(t, got.IsZero())
			require.Empty(t, precision)
			return
		}
		require.GreaterOrEqual(t, got.Year(), firstYear-1)
		require.LessOrEqual(t, got.Year(), lastYear+1)
		again, _, ok := ParseDate(got.Format("2006-01-02T15:04:05.999999999Z07:00"))
		if got.Year() >= firstYear && got.Year() <= lastYear {
			require.True(t, ok)
			require.True(t, again.Equal(got))
		}
	})
}
