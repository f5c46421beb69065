// Package makefile_test runs the targets of the Makefile with programs that stand in for Go and the compiler.
package makefile_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/config/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// tools are what the Makefile uses besides Go and the compiler.
var tools = []string{"bash", "env", "sed", "sort", "head", "mkdir", "awk", "date"}

// run runs make with a PATH that holds the tools and the scripts, and nothing else.
func run(t *testing.T, target string, scripts map[string]string, env ...string) (output string, failed bool) {
	t.Helper()
	program, err := exec.LookPath("make")
	require.NoError(t, err, "who runs make test has make")
	path := t.TempDir()
	for _, name := range tools {
		found, err := exec.LookPath(name)
		require.NoError(t, err)
		require.NoError(t, os.Symlink(found, filepath.Join(path, name)))
	}
	for name, script := range scripts {
		require.NoError(t, os.WriteFile(filepath.Join(path, name), []byte("#!"+filepath.Join(path, "bash")+"\n"+script), 0o700))
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	cmd := exec.Command(program, "-C", root, "BIN="+filepath.Join(path, "bin"), target)
	cmd.Env = append([]string{"PATH=" + path}, env...) // nothing of a make that runs this test
	text, err := cmd.CombinedOutput()
	return string(text), err != nil
}

// aGo is a Go that has the version which is asked for and else shows its environment.
const aGo = `if [[ "$1" == env ]]; then echo go1.26.0; else echo "ran: go $1"; env; fi`

func TestNoKeyInTheEnvironmentReachesMakeTest(t *testing.T) {
	t.Parallel()
	for _, target := range []string{"test", "race"} {
		output, failed := run(t, target, map[string]string{"go": aGo, "gcc": "true"}, "OFFLINE=0", "TABSTACK_API_KEY=live-key-1", "BRAVE_API_KEY=live-key-2",
			"TABSTACK_BASE_URL=https://elsewhere.example", "BRAVE_BASE_URL=https://elsewhere.example", "NATS_URL=nats://elsewhere.example")
		require.False(t, failed, output)
		require.Contains(t, output, "ran: go test")
		require.Contains(t, output, "\nOFFLINE=1\n")
		require.NotContains(t, output, "live-key")
		require.NotContains(t, output, "elsewhere.example")
	}
}

func TestWhatIsMissingIsOneClearLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		scripts map[string]string
		says    string
	}{
		"no compiler": {map[string]string{"go": aGo}, "A C compiler is missing (SQLite is built from C): install gcc, then run make again"},
		"no Go":       {map[string]string{"gcc": "true"}, "Go is missing: install Go 1.26 or newer, then run make again"},
		"an old Go":   {map[string]string{"go": "echo go1.25.9", "gcc": "true"}, "Go 1.25.9 is too old: 1.26 or newer is needed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, target := range []string{"up", "build", "test"} {
				output, failed := run(t, target, c.scripts)
				require.True(t, failed, "%s: %s", target, output)
				var said []string
				for line := range strings.Lines(output) {
					if !strings.Contains(line, "ing directory") { // which make is told, and tells
						said = append(said, strings.TrimSpace(line))
					}
				}
				require.Len(t, said, 1, output)
				require.Regexp(t, `^Makefile:\d+: \*\*\* `+regexp.QuoteMeta(c.says)+`\.  Stop\.$`, said[0], target)
				require.NotContains(t, output, "ran: go", "nothing was built")
			}
		})
	}
}
