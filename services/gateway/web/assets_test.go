package web_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

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

// The characters that turn the direction of what follows, which make an address or a title read as another than it is.
func turning() (all []rune) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			all = append(all, r)
		}
	}
	return all
}

// Text reaches the page in three ways, and the title and the questions that a browser asks in one each; on all of them such characters become names.
func TestWhatTurnsTheDirectionIsShownByNameOnThePage(t *testing.T) {
	t.Parallel()
	all := scripts(t)
	rule := regexp.MustCompile(`replace\(/\[([^\]]*)\]/g, c => "\[U\+" \+ c\.codePointAt\(0\)\.toString\(16\)\.toUpperCase\(\) \+ "\]"\)`).FindStringSubmatch(all["dom.js"])
	require.NotNil(t, rule)
	named := regexp.MustCompile("[" + regexp.MustCompile(`\\u([0-9a-f]{4})`).ReplaceAllString(rule[1], `\x{$1}`) + "]")
	var found []rune
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if named.MatchString(string(r)) {
			found = append(found, r)
		}
	}
	require.Equal(t, turning(), found)

	ways := map[string]bool{}
	for name, script := range all {
		for way, safe := range map[string]string{
			`createTextNode\([^;]*`:      `^createTextNode\(inert\(String\(child\)\)\)`,
			`textContent = [^;]*`:        `^textContent = shown$`,
			`document\.title = [^;]*`:    `^document\.title = (inert\(title\) \+ )?"[^"]*"$`,
			`\bconfirm\("[^;]*?"\)[^;]*`: `^confirm\(("[^"]*"( \+ inert\([^()]*\) \+ )?)+\)`,
		} {
			for _, found := range regexp.MustCompile(way).FindAllString(script, -1) {
				require.Regexp(t, safe, found, name)
				ways[way] = true
			}
		}
	}
	require.Len(t, ways, 4)
	require.Contains(t, all["dom.js"], "const shown = inert(text);")
}

func TestWhatTurnsTheDirectionIsShownByNameInAReport(t *testing.T) {
	t.Parallel()
	for _, r := range turning() {
		c := string(r)
		name := fmt.Sprintf("[U+%04X]", r)
		mux := http.NewServeMux()
		web.Register(mux, web.Backend{Report: func(context.Context, string) (web.Report, error) {
			return web.Report{
				Question: "q" + c + "q", Thread: "t",
				Markdown: "m" + c + "m, e&#x" + fmt.Sprintf("%x", r) + ";e, `k" + c + "k`, [l" + c + "l](https://a.example/" + c + "gpj.exe), https://b.example/" + c + "gpj.exe and <i title='" + c + "'>",
				Pages:    []web.Page{{N: 1, URL: "https://c.example/" + c + "gpj.exe", Title: "p" + c + "p"}, {N: 2, URL: "https://d.example/" + c + "gpj.exe"}, {N: 3, Title: "n" + c + "n"}},
			}, nil
		}})
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/reports/x", nil))
		require.Equal(t, http.StatusOK, answer.Code)
		html := answer.Body.String()
		require.NotContains(t, html, c, name)
		require.NotRegexp(t, fmt.Sprintf(`(?i)&#x?0*(%x|%d);`, r, r), html, "nor by an entity")
		for _, shown := range []string{"<h1 dir=\"auto\">q?q", "m?m", "e?e", "k?k", ">l?l<", ">https://b.example/</a>?gpj.exe", "&lt;i title='?'", ">p?p<", "<bdi>https://c.example/?gpj.exe<", ">https://d.example/?gpj.exe<", "<bdi>n?n<"} {
			if shown = strings.ReplaceAll(shown, "?", name); !strings.Contains(html, shown) && !strings.Contains(html, strings.ReplaceAll(shown, "'", "&#39;")) {
				require.Contains(t, html, shown)
			}
		}
		for _, link := range []string{"a", "c", "d"} {
			require.Regexp(t, `(?i)href="https://`+link+`\.example/`+url.PathEscape(c)+`gpj\.exe"`, html, "a link leads where it did")
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

// README promises it: every sentence of a brief names its facts, those about a dispute too.
func TestEverySentenceOfABriefLeadsToItsFactsOnThePage(t *testing.T) {
	t.Parallel()
	lists := regexp.MustCompile(`list\("(Findings|Disputed|Relationships)", brief\.\w+, ([^)]*)`).FindAllStringSubmatch(scripts(t)["app.js"], -1)
	require.Len(t, lists, 3)
	for _, list := range lists {
		require.Contains(t, list[2], "cited", "the sentences under %s", list[1])
	}
}

// A budget may be lowered below what was spent: "until the -500 credits left are used" was to be read then.
func TestThePageNamesNoCreditsLeftWhenNoneAre(t *testing.T) {
	t.Parallel()
	require.Regexp(t, `if \(left < cost\) return "Autopilot asks nothing now`, scripts(t)["app.js"])
}

// At depth 0 no follow-up is asked, so the page must not say that autopilot asks them.
func TestThePagePromisesNoFollowUpsAtDepthZero(t *testing.T) {
	t.Parallel()
	require.Regexp(t, `depth === 0 \? "[^"]*no follow-ups`, scripts(t)["app.js"])
}

// Start was offered where it was refused, and left autopilot set on that had never begun.
func TestThePageOffersAutopilotOnlyWhereItGoesOnAndLeavesNothingHalfDone(t *testing.T) {
	t.Parallel()
	script := scripts(t)["app.js"]
	require.Regexp(t, `const refused = startRefused\(thread, settings\);`, script)
	require.Regexp(t, `!piloted && !refused && actionButton\("start"`, script)
	require.Regexp(t, `if \(thread\.start_refused\) return thread\.start_refused\.text;`, script)
	require.Len(t, regexp.MustCompile(`"/start"`).FindAllString(script, -1), 1, "by startAutopilot alone")
	require.Regexp(t, `try \{ await ask\(at \+ "/start", "POST"\); \} catch \(e\) \{\s*if \(!on && e\.status === 409\) await ask\(at, "PATCH", \{ auto: false \}\);\s*throw e;`, script)
	require.NotContains(t, script, "Pause lets the call under way", "there may be none")
}

// The contents and the parts are made of one list, and a link of the contents is the id of a heading: a browser follows it by itself.
func TestTheContentsOfAThreadLeadToEveryPart(t *testing.T) {
	t.Parallel()
	script := scripts(t)["app.js"]
	require.Regexp(t, `parts\.map\(p => entry\(p\.name, p\.label, p\.n\)\)`, script)
	require.Regexp(t, `href: "#/threads/" \+ id \+ "/parts/" \+ name`, script)
	require.Contains(t, script, `part("/threads/" + id, p.name, p.title, p.shown)`)
	require.Contains(t, script, `const heading = at + "/parts/" + name;`)
	require.Contains(t, script, `el("h2", { id: heading, tabindex: -1 }`)
	require.Contains(t, script, `el("h1", { id: "/threads/" + id + "/parts/question", tabindex: -1`)
	require.Len(t, regexp.MustCompile(`\bpart\("`).FindAllString(script, -1), 2, "a thread's by the list, and one of the page of messages")
	_, list, found := strings.Cut(script, "function threadParts(")
	require.True(t, found)
	list, _, _ = strings.Cut(list, "\n}\n")
	require.Len(t, regexp.MustCompile(`\{ name: "[a-z]+", label: "[^"]+"|\{ name: "brief", label: brief \?`).FindAllString(list, -1), 10)
	style, err := os.ReadFile("assets/style.css")
	require.NoError(t, err)
	width := regexp.MustCompile(`matchMedia\("\(min-width: (\d+rem)\)"\)`).FindStringSubmatch(script)
	require.NotNil(t, width)
	require.Contains(t, string(style), "@media (min-width: "+width[1]+")", "the contents are open where they stand beside the page")
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
