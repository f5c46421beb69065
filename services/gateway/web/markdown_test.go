package web_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/services/gateway/web"
)

func TestMarkdownFromOutsideIsInert(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ source, want string }{
		"text":                 {"Cells *reached* 450 [1].", "<p>Cells <em>reached</em> 450 [1].</p>\n"},
		"link":                 {"[a](https://example.com/?q=1&r=2)", `<p><a href="https://example.com/?q=1&amp;r=2" rel="nofollow noreferrer noopener" target="_blank">a</a></p>` + "\n"},
		"bare link":            {"see http://example.com/a", `<p>see <a href="http://example.com/a" rel="nofollow noreferrer noopener" target="_blank">http://example.com/a</a></p>` + "\n"},
		"script link":          {"[a](javascript:alert(1))", "<p>a</p>\n"},
		"script link, encoded": {"[a](&#106;avascript:alert(1))", "<p>a</p>\n"},
		"data link":            {"[a](data:text/html,x)", "<p>a</p>\n"},
		"relative link":        {"[a](/login)", "<p>a</p>\n"},
		"protocol-relative":    {"[a](//evil.example/)", "<p>a</p>\n"},
		"image":                {"![a](https://evil.example/x.png)", "<p></p>\n"},
		"raw HTML":             {"a <b onclick=alert(1)>b</b> <img src=x onerror=alert(1)>", "<p>a &lt;b onclick=alert(1)&gt;b&lt;/b&gt; &lt;img src=x onerror=alert(1)&gt;</p>\n"},
		"script":               {"<script>alert(1)</script> and text", "<p>&lt;script&gt;alert(1)&lt;/script&gt; and text</p>\n"},
		"style":                {"<style>body{display:none}</style>", "<p>&lt;style&gt;body{display:none}&lt;/style&gt;</p>\n"},
		"frame":                {"<div>\n<iframe src=x>\n</div>\n\nafter", "<p>&lt;div&gt;\n&lt;iframe src=x&gt;\n&lt;/div&gt;\n</p>\n<p>after</p>\n"},
		"comment over lines":   {"<!-- a\nb -->", "<p>&lt;!-- a\nb --&gt;</p>\n"},
		"code":                 {"`<script>`", "<p><code>&lt;script&gt;</code></p>\n"},
		"heading without id":   {"# main", "<h1>main</h1>\n"},
		"null and broken text": {"a\x00b \xff", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			html, err := web.Render(c.source)
			require.NoError(t, err)
			if c.want != "" {
				require.Equal(t, c.want, string(html))
			}
		})
	}
}

func TestTablesAreKept(t *testing.T) {
	t.Parallel()
	html, err := web.Render("| a | b |\n|:--|--:|\n| 1 | 2 |\n")
	require.NoError(t, err)
	require.Contains(t, string(html), "<table>")
	require.Contains(t, string(html), "<td")
}

func FuzzRender(f *testing.F) {
	for _, seed := range []string{"# a", "[a](javascript:alert(1))", "<script>x</script>", "<svg/onload=alert(1)>", "![x](x)", "<a href=\"java\nscript:x\">a</a>", "|a|\n|-|\n|<b>|"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		html, err := web.Render(source)
		if err != nil {
			return
		}
		lower := strings.ToLower(string(html))
		for _, bad := range []string{"<script", "<img", "<iframe", "<svg", "<style", "<form", "href=\"javascript", "href=\"data", " onerror=\"", " id=\""} {
			if strings.Contains(lower, bad) {
				t.Fatalf("%q gives %q", source, html)
			}
		}
	})
}
