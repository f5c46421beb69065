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
	"github.com/factstream/factstream/shared/notebook"
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
			require.Regexp(t, `^href: (parsed\.href|"#/|"/reports/|api \+ "/runs/)`, link, name)
		}
		// Besides, a file that is kept is handed over by one, which leads to its text and is not shown.
		for _, link := range regexp.MustCompile(`\.href = .*`).FindAllString(script, -1) {
			require.Equal(t, []string{"dom.js", ".href = url;"}, []string{name, link})
			require.Contains(t, script, `const url = URL.createObjectURL(new Blob([text], { type: "text/markdown;charset=utf-8" }));`)
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
	require.Regexp(t, `const refused = thread\.autopilot \? null : startRefused\(thread, settings\);`, script)
	require.Regexp(t, `!thread\.autopilot && !refused && actionButton\("start", "Start",`, script, "it is called as the reasons call it")
	require.Regexp(t, `function startRefused\(thread, settings\) \{ return thread\.start_refused \|\| keyless`, script)
	require.Len(t, regexp.MustCompile(`"/start"`).FindAllString(script, -1), 1, "by startAutopilot alone")
	require.Regexp(t, `try \{ await ask\(at \+ "/start", "POST"\); \} catch \(e\) \{\s*if \(!on && e\.status === 409\) await ask\(at, "PATCH", \{ auto: false \}\);\s*throw e;`, script)
	require.NotContains(t, script, "Pause lets the call under way", "there may be none")
}

// function gives the text of a function of a script that stands by itself.
func function(t *testing.T, script, name string) string {
	t.Helper()
	_, rest, found := strings.Cut(script, "\nfunction "+name+"(")
	require.True(t, found, name)
	text, _, found := strings.Cut(rest, "\n}\n")
	require.True(t, found, name)
	return text
}

// "Autopilot can be started after that." was once to be read, of nothing that was named. Whatever keeps Start or a run from going on, the page says what has
// to be done, and leads to the control that does it.
func TestThePageLeadsToWhatCuresARefusal(t *testing.T) {
	t.Parallel()
	script := scripts(t)["app.js"]
	require.NotContains(t, script, "after that")
	cure := function(t, script, "cure")
	for _, code := range []string{notebook.ReasonBudget, notebook.ReasonDepth, notebook.ReasonArchived, notebook.ReasonNoQuestions, notebook.ReasonNoKey, notebook.ReasonAnswerBudget} {
		require.Regexp(t, `case "`+code+`": return (control\("(after|once|when) [^"]+", "[a-z-]+", "[^"]+"\)|\["after [^"]*: ", el\("a", \{ href: "#/settings" \}|"after [^"]*by the API)`, cure)
	}
	controls := regexp.MustCompile(`control\("[^"]+", "([a-z-]+)"`).FindAllStringSubmatch(cure, -1)
	require.Len(t, controls, 5, "and one for whatever else there may be")
	for _, control := range controls {
		require.Regexp(t, `(id: "`+control[1]+`"|(modeSelect|numberField|budgetField|actionButton)\("`+control[1]+`")`, script)
	}
	require.Contains(t, function(t, script, "pilotWaits"), `cure(thread, refused.code)`)
	require.Contains(t, function(t, script, "toPlace"), `if (folded) folded.open = true;`, "a control may be folded away")
	require.Regexp(t, `thread\.start_refused\?\.code === "no_questions"\) && followUp`, script, "the box is there where it is led to")
}

// A paid button that could only be refused was to be pressed all the same.
func TestAButtonThatCouldOnlyBeRefusedSaysWhyBesideIt(t *testing.T) {
	t.Parallel()
	script := scripts(t)["app.js"]
	bar := function(t, script, "bar")
	require.Contains(t, bar, `button.setAttribute("aria-disabled", "true");`)
	require.Contains(t, bar, `button.setAttribute("aria-describedby", note.id);`)
	require.Contains(t, bar, `note.hidden = !refused;`)
	require.Regexp(t, `if \(button\.getAttribute\("aria-disabled"\)\) return;`, function(t, script, "act"), "it does nothing")
	require.Regexp(t, `bar\(once, waits, barred, barred && \[barred\.text`, function(t, script, "threadActions"))
	followUp := function(t, script, "followUp")
	require.Regexp(t, `bar\(now, waits, refused, refused && \[refused\.text`, followUp)
	require.Contains(t, followUp, `modes.addEventListener("input", () => look(modes.value));`, "by the mode that is chosen")
	require.Contains(t, function(t, script, "runRefused"), `thread.run_refused[mode] || keyless(thread, settings)`)
	require.Len(t, regexp.MustCompile(`"/runs", "POST"`).FindAllString(script, -1), 2, "by these two buttons alone")
	for form, field := range map[string]string{"newThread": "budget", "threadSettings": "thread-budget"} {
		require.Contains(t, function(t, script, form), `budgetField("`+field+`"`, "a budget without room for a run is warned of")
	}
}

// It said "Autopilot asks it next" also where it could not, and to nobody who sees.
func TestAQuestionThatIsPutInLineIsToldTrulyAndVisibly(t *testing.T) {
	t.Parallel()
	script := scripts(t)["app.js"]
	require.Len(t, regexp.MustCompile(`Autopilot asks it next`).FindAllString(script, -1), 1)
	require.Regexp(t, `if \(refused\) return place [^\n]*\n  if \(thread\.autopilot\) return place \+ \([^\n]*Autopilot asks it next`, function(t, script, "inLine"))
	followUp := function(t, script, "followUp")
	require.Contains(t, followUp, `if (question.position > 0) question = await ask(api + "/questions/" + question.id, "PATCH", { position: 0 });`, "first is first")
	require.Contains(t, followUp, `done(inLine(question, await ask(at), settings));`, "as the thread is then")
	require.Contains(t, followUp, `put && el("p", { id: "lined", class: "note" }, text(inLine(put, thread, settings)))`, "and as it is whenever it is looked at")
	require.Contains(t, function(t, script, "act"), `lined = "";`)
	require.Regexp(t, `if \(!anew\) \{[^}]*dealt = lined = "";`, script, "it goes when the page is left")
}

// In the list of threads there is no Start.
func TestTheListOfThreadsDoesNotAdviseToPressWhatItDoesNotHave(t *testing.T) {
	t.Parallel()
	script := scripts(t)["app.js"]
	require.Contains(t, function(t, script, "threadItem"), `statusLine(t, withoutStart(t.reason.text))`)
	rules := regexp.MustCompile(`\.replace\(/([^\n]*?)/, "(\.?)"\)`).FindAllStringSubmatch(function(t, script, "withoutStart"), -1)
	require.Len(t, rules, 2)
	for reason, want := range map[string]string{
		`You paused this thread. Press Start to go on.`:                                    `You paused this thread.`,
		`The run "Why?" failed (stall): Nothing came. Press Start to ask again.`:           `The run "Why?" failed (stall): Nothing came.`,
		`Autopilot could not decide what comes next: Away. Press Start to try again.`:      `Autopilot could not decide what comes next: Away.`,
		`Its report was deleted. Press Start to go on without it.`:                         `Its report was deleted.`,
		`Its report is kept; retry the stage, or press Start to go on without it.`:         `Its report is kept; retry the stage.`,
		`If none has been saved since, save one in the settings; then press Start.`:        `If none has been saved since, save one in the settings.`,
		`There is no usable key for tabstack. Save one in the settings, then press Start.`: `There is no usable key for tabstack. Save one in the settings.`,
		`Nothing has been asked yet. Ask now, or press Start.`:                             `Nothing has been asked yet. Ask now.`,
		`The next question is "Who has to press Start?". Press Start to go on.`:            `The next question is "Who has to press Start?".`,
		`The run "Press Start to win." failed (stall): Nothing came.`:                      `The run "Press Start to win." failed (stall): Nothing came.`,
		`There is no open question left. Put a question of your own to go on.`:             `There is no open question left. Put a question of your own to go on.`,
	} {
		for _, rule := range rules {
			reason = regexp.MustCompile(rule[1]).ReplaceAllString(reason, rule[2])
		}
		require.Equal(t, want, reason)
	}
}

// What a provider calls what it is doing is quoted, and put in words where it is known: what the recordings hold all is.
func TestThePageHasWordsForThePhasesThatARecordingTells(t *testing.T) {
	t.Parallel()
	script := scripts(t)["app.js"]
	_, rest, found := strings.Cut(script, "const phases = {")
	require.True(t, found)
	words, _, _ := strings.Cut(rest, "};")
	told := 0
	for _, mode := range []string{"fast", "balanced"} {
		stream, err := os.ReadFile("../../../fixtures/tabstack-" + mode + ".sse")
		require.NoError(t, err)
		for _, name := range regexp.MustCompile(`(?m)^event: *([a-z]+)`).FindAllSubmatch(stream, -1) {
			told++
			require.Regexp(t, `\b`+string(name[1])+`: "`, words)
		}
	}
	require.NotZero(t, told)
	require.Contains(t, function(t, script, "phaseWords"), `"“" + name + "”"`)
	require.Len(t, regexp.MustCompile(`phaseWords\(`).FindAllString(script, -1), 3, "wherever one is shown")
}

// The deletion of a receipt warns that the trail goes, which could not be seen before it.
func TestThePageLeadsToTheTrailThatADeletionTakesAway(t *testing.T) {
	t.Parallel()
	script := scripts(t)["app.js"]
	for _, item := range []string{"openRun", "endedRun"} {
		require.Contains(t, function(t, script, item), `trailLink(run)`)
	}
	require.Regexp(t, `run\.attempts\.length > 0 && !run\.deleted && el\("a", \{ class: "button", href: api \+ "/runs/" \+ encodeURIComponent\(run\.id\) \+ "/trail" \}`, script)
}

// The brief's Markdown was in the API alone.
func TestABriefIsToBeHadAsMarkdown(t *testing.T) {
	t.Parallel()
	all := scripts(t)
	brief := function(t, all["app.js"], "briefPart")
	require.Regexp(t, `actionButton\("brief-download", "Download Markdown", async \(\) => save\([^;]*brief\.markdown\)\)`, brief)
	require.Regexp(t, `copyButton\("brief-copy", [^;]*brief\.markdown, "brief-markdown"\)`, brief)
	require.Contains(t, brief, `id: "brief-markdown"`, "it is shown, for a browser that does not copy")
	require.Contains(t, brief, "numbers its facts anew")
	require.Contains(t, all["dom.js"], "link.click();")
}

// "stale" and "no single page" stood there without a word.
func TestThePageExplainsWhatItSaysOfAFact(t *testing.T) {
	t.Parallel()
	script := scripts(t)["app.js"]
	fact := function(t, script, "factItem")
	require.Contains(t, fact, `title: "Stale: " + staleWords }, "stale since " + f.stale_since.slice(0, 10)`)
	require.Regexp(t, `facts\.items\.some\(f => f\.stale\) && el\("p", [^\n]*staleWords\)`, function(t, script, "threadParts"), "for who has no pointer")
	require.Contains(t, fact, `citedBy(f, reports)`)
	marks := regexp.MustCompile(`match\(/(\\\[[^/]+)/g\)`).FindStringSubmatch(function(t, script, "citedBy"))
	require.NotNil(t, marks)
	require.Equal(t, []string{"[1]", "[2, 13]", "[4]"}, regexp.MustCompile(marks[1]).FindAllString("It is [so] in [1][2, 13], and a[i] by [4].", -1))
	report, err := os.ReadFile("assets/report.html")
	require.NoError(t, err)
	require.Contains(t, string(report), `id="page-{{.N}}"`, "where the link of a mark leads")
}

// A refusal stayed beside the browser's own word about another field.
func TestOneMessageIsShownAtATime(t *testing.T) {
	t.Parallel()
	script := scripts(t)["app.js"]
	require.Contains(t, script, `main.addEventListener("invalid", () => tell(""), true);`)
	require.Contains(t, function(t, script, "followUp"), `.reportValidity()) return;`, "what is no submission says so too")
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
