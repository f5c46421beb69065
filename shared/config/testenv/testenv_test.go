package testenv_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/config/testenv"
)

// reportTo is set for the child process of the test below, which then writes what it was left with and runs no test.
const reportTo = "TESTENV_REPORT_TO"

type reporter struct{ to string }

type report struct {
	Tabstack, Brave, Offline        string
	TabstackAllowed, BraveAllowed   bool
	GrandchildSeesAKey, StandinFine bool
}

func (r reporter) Run() int {
	cfg, err := config.Load(nil, os.Getenv, "child")
	if err != nil {
		panic(err)
	}
	grandchild, _ := exec.Command("env").Output()
	out, _ := json.Marshal(report{
		Tabstack: os.Getenv("TABSTACK_API_KEY"), Brave: os.Getenv("BRAVE_API_KEY"), Offline: os.Getenv("OFFLINE"),
		TabstackAllowed: cfg.Live(cfg.Tabstack.BaseURL), BraveAllowed: cfg.Live(cfg.Brave.BaseURL),
		GrandchildSeesAKey: bytes.Contains(grandchild, []byte("live-key")),
		StandinFine:        cfg.Live("http://127.0.0.1:1"),
	})
	if err := os.WriteFile(r.to, out, 0o600); err != nil {
		panic(err)
	}
	return 0
}

func TestMain(m *testing.M) {
	if to := os.Getenv(reportTo); to != "" {
		testenv.Main(reporter{to})
	}
	testenv.Main(m)
}

func TestNoKeyInTheEnvironmentLetsATestReachAProvider(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	file := t.TempDir() + "/report.json"
	child := exec.Command(self)
	child.Env = append(os.Environ(), reportTo+"="+file,
		"TABSTACK_API_KEY=live-key-1", "BRAVE_API_KEY=live-key-2", "OFFLINE=0",
		"TABSTACK_BASE_URL=https://elsewhere.example", "BRAVE_BASE_URL=https://elsewhere.example")
	output, err := child.CombinedOutput()
	require.NoError(t, err, string(output))

	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	var got report
	require.NoError(t, json.Unmarshal(raw, &got))
	require.Equal(t, report{Offline: "1", StandinFine: true}, got)
}
