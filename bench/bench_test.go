package bench

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/shared/config/testenv"
)

func TestMain(m *testing.M) {
	testenv.Clear()
	goleak.VerifyTestMain(bustest.Leaks(m))
}

// programs builds what is measured, the way the Makefile does.
func programs(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, program := range []struct{ module, pkg string }{
		{"../services/researcher", "."}, {"../services/distiller", "."}, {"../services/judge", "."}, {"../services/briefer", "."}, {"../services/gateway", "."},
		{"../cluster", "./cmd/factstream"},
	} {
		command := exec.Command("go", "build", "-tags", "sqlite_fts5", "-o", dir+string(filepath.Separator), program.pkg)
		command.Dir = program.module
		command.Env = append(os.Environ(), "CGO_ENABLED=1")
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s %s\n%s", program.module, program.pkg, output)
	}
	return dir
}

// Every section is measured once, as little as goes, with the real programs. What the figures are is not looked at: this machine may be busy.
func TestEverySectionIsMeasuredAndNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	least := effort{chainRuns: 2, chainWarmup: 0, starts: 1, decoderRounds: 1, decoderSample: time.Nanosecond, largeEvent: 64 << 10,
		appendRounds: 1, appendSample: 20 * time.Millisecond, rebuilds: 1, events: 1_100}
	dir := t.TempDir()
	var progress bytes.Buffer
	report, err := measure(t.Context(), Options{Bin: programs(t), Dir: dir, Progress: &progress}, Sections(), least)
	require.NoError(t, err)

	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
	for _, s := range Sections() {
		require.Contains(t, progress.String(), s.Name+": ")
	}
	names := map[string]int{}
	for _, s := range report.Samples {
		names[s.Name]++
	}
	require.Equal(t, 2, names[sampleChain])
	require.Equal(t, 2, names[sampleHops])
	require.Equal(t, 2, names[sampleProjection])
	require.Equal(t, 2, names[sampleStep+"attempt.started"])
	require.Equal(t, 2, names[sampleStep+"thread.settled"])
	require.Zero(t, names[sampleStep+"run.requested"], "when it comes is the client's doing")
	require.Equal(t, 1, names[sampleFirst])
	require.Equal(t, 1, names[sampleLater])
	require.Equal(t, 1, names["Append/writers=8/by=append"])
	require.Equal(t, 1, names["Decoder/events=large/pieces=512/by=go-sse"])
	require.Equal(t, 1, names["Rebuild/events=1100"])
	for _, row := range report.Rows {
		require.NotContains(t, row.Figure, "NaN", row.What)
		require.NotContains(t, row.Figure, "?", row.What)
	}
	requireReadable(t, report)
}

func requireReadable(t *testing.T, r Report) {
	t.Helper()
	for line := range strings.Lines(r.Table()) {
		require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), 80, line)
		require.NotRegexp(t, ` \n$`, line)
	}
	for _, row := range r.Rows { // else the columns would not stand below each other
		require.LessOrEqual(t, utf8.RuneCountInString("  "+row.What), widthWhat, row.What)
		require.LessOrEqual(t, utf8.RuneCountInString(row.Figure), widthFigure, row.Figure)
		require.Less(t, utf8.RuneCountInString(row.Expected), widthExpected, row.Expected)
	}
	var file bytes.Buffer
	require.NoError(t, r.WriteBenchmarks(&file))
	form := regexp.MustCompile(`^(# .*|#|goos: \S+|goarch: \S+|pkg: \S+|cpu: .+|Unit \S+ better=higher|Benchmark[A-Z][^\s]*-\d+\t\d+(\t[0-9.e+-]+ [^\s]+)+)\n$`)
	benchmarks := 0
	for line := range strings.Lines(file.String()) {
		require.Regexp(t, form, line)
		if strings.HasPrefix(line, "Benchmark") {
			benchmarks++
		}
	}
	require.Equal(t, len(r.Samples), benchmarks)
}

func TestTheTableSaysWhatMisses(t *testing.T) {
	t.Parallel()
	r := Report{Machine: thisMachine(t.TempDir()), Rows: []Row{
		under("time", "below", 1.2e6, 250e6, millis), under("time", "above", 12e9, 3e9, millis), {Section: "time", What: "nothing expected", Figure: "7/s"},
		atMost("ratio", "at the bound", 3, 3), atMost("ratio", "above", 3.01, 3), atLeast("ratio", "at the bound", 1.5, 1.5), atLeast("ratio", "nothing was measured", quantile(nil, 0.5), 1.5),
	}}
	require.Equal(t, `                                                  figure  expected
time
  below                                           1.2 ms  < 250 ms      ok
  above                                           12.0 s  < 3.00 s      misses
  nothing expected                                   7/s
ratio
  at the bound                                     3.00x  at most 3x    ok
  above                                            3.01x  at most 3x    misses
  at the bound                                     1.50x  at least 1.5x ok
  nothing was measured                                 ?  at least 1.5x misses
`, r.Table())
	require.Equal(t, 3, r.Misses())
	requireReadable(t, r)
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		q    float64
		want float64
	}{{0, 1}, {0.5, 2.5}, {1, 4}, {0.95, 3.85}} {
		require.InDelta(t, c.want, quantile([]float64{4, 1, 3, 2}, c.q), 1e-9)
	}
	require.Equal(t, 7.0, quantile([]float64{7}, 0.95))
}

func TestSectionsAreChosenByName(t *testing.T) {
	t.Parallel()
	_, err := Run(t.Context(), Options{Dir: t.TempDir(), Sections: []string{"decoder", "speed"}, Progress: io.Discard})
	require.ErrorIs(t, err, ErrNoSection)
	require.ErrorContains(t, err, `"speed" (there are: chain, start, decoder, appends, rebuild)`)
}

func TestAProgramThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	report, err := measure(t.Context(), Options{Bin: t.TempDir(), Dir: t.TempDir(), Progress: io.Discard}, []Section{
		{Name: "before", measure: func(_ context.Context, r *run) ([]Row, error) {
			r.samples.took("Before", 1, time.Second)
			return []Row{{What: "before"}}, nil
		}},
		{Name: "start", measure: measureStart},
	}, usual)
	require.ErrorContains(t, err, "measure start: start factstream:")
	require.Len(t, report.Rows, 1, "what was measured before is kept")
	require.Len(t, report.Samples, 1)
}
