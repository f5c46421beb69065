package web_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/services/gateway/web"
)

func scripts(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("assets/*.js")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	all := map[string]string{}
	for _, path := range paths {
		script, err := os.ReadFile(path)
		require.NoError(t, err)
		all[filepath.Base(path)] = string(script)
	}
	return all
}

// What the script shows comes from providers and models: it must have no way of making HTML or code of it.
func TestTheScriptMakesNoHTMLAndNoCodeOfText(t *testing.T) {
	t.Parallel()
	links := 0
	for name, script := range scripts(t) {
		for _, way := range []string{`innerHTML`, `outerHTML`, `insertAdjacentHTML`, `document\.write`, `\beval\b`, `new Function`, `DOMParser`, `srcdoc`, `createContextualFragment`, `setTimeout\("`} {
			require.NotRegexp(t, way, script, name)
		}
		// A link is made of an address that was found to be http or https, and else within the page.
		for _, link := range regexp.MustCompile(`href: [^,}]*`).FindAllString(script, -1) {
			links++
			require.Regexp(t, `^href: (parsed\.href|"#/|"/reports/)`, link, name)
		}
	}
	require.NotZero(t, links)
}

// The words false, null and [object ...] were once to be seen on the page. The functions of dom.js let text, numbers and elements through and nothing else,
// and no other part of the script puts anything on the page.
func TestOnlyTheElementBuilderPutsAnythingOnThePage(t *testing.T) {
	t.Parallel()
	for name, script := range scripts(t) {
		if name == "dom.js" {
			require.Contains(t, script, `typeof child === "string" || Number.isFinite(child)`)
			require.Len(t, regexp.MustCompile(`\.append\(`).FindAllString(script, -1), 1, "by el, of nodes")
			require.NotContains(t, script, "replaceChildren")
			continue
		}
		for _, way := range []string{`\.append\(`, `\.prepend\(`, `\.appendChild\(`, `\.replaceChildren\(`, `\.replaceWith\(`, `\.insertBefore\(`, `\.before\(`, `\.after\(`, `createElement`, `createTextNode`,
			`textContent = `, `innerText`, `\.toString\(`} {
			if way == `\.toString\(` && name == "api.js" { // a random key
				continue
			}
			require.NotRegexp(t, way, script, name)
		}
	}
}

// A dead letter says what putting it back leads to, whichever worker could not read it.
func TestThePageHasWordsForTheLettersOfEveryWorker(t *testing.T) {
	t.Parallel()
	_, rest, found := strings.Cut(scripts(t)["app.js"], "const workers = {")
	require.True(t, found)
	words, _, _ := strings.Cut(rest, "};")
	for _, d := range topology.Durables() {
		require.Contains(t, words, `"`+d.Name+`": [`)
	}
}

// A file that is not among those that are served would leave the page blank.
func TestEveryScriptIsServed(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	web.Register(mux, web.Backend{})
	imports := regexp.MustCompile(`from "\./([^"]+)"`)
	for name, script := range scripts(t) {
		files := []string{name}
		for _, other := range imports.FindAllStringSubmatch(script, -1) {
			files = append(files, other[1])
		}
		for _, file := range files {
			answer := httptest.NewRecorder()
			mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/assets/"+file, nil))
			require.Equal(t, http.StatusOK, answer.Code, file)
			require.Contains(t, answer.Header().Get("Content-Type"), "text/javascript", file)
		}
	}
}

func TestPagesHaveNoInlineScriptOrStyle(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"page.html", "report.html", "login.html", "error.html"} {
		html, err := os.ReadFile("assets/" + name)
		require.NoError(t, err)
		require.NotRegexp(t, `(?i)<style|\sstyle=|\son[a-z]+=|<script>`, string(html), name)
		for _, src := range regexp.MustCompile(`(?i)(?:src|href)="([^"{]*)`).FindAllStringSubmatch(string(html), -1) {
			require.Regexp(t, `^(/|#|$)`, src[1], name)
		}
	}
}
