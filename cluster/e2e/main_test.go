package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/factstream/factstream/shared/config/testenv"
)

// bin holds the programs as they are shipped; shims a curl for the lines of the greeting.
var bin, shims string

func TestMain(m *testing.M) {
	testenv.Clear()
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "factstream-e2e-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)                                //nolint:errcheck // a temporary directory
		if dir, err = filepath.EvalSymlinks(dir); err != nil { // processes are known by the path of their program
			panic(err)
		}
		bin, shims = filepath.Join(dir, "bin"), filepath.Join(dir, "shims")
		if err := build(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// build makes every program the way the Makefile does, each in its own module.
func build() error {
	var faults []error
	for _, program := range []struct{ module, pkg, to string }{
		{"../../services/researcher", ".", bin},
		{"../../services/distiller", ".", bin},
		{"../../services/judge", ".", bin},
		{"../../services/briefer", ".", bin},
		{"../../services/gateway", ".", bin},
		{"..", "./cmd/factstream", bin},
		{"testdata/curl", ".", shims},
	} {
		command := exec.Command("go", "build", "-tags", "sqlite_fts5", "-o", program.to+string(filepath.Separator), program.pkg)
		command.Dir = program.module
		command.Env = append(os.Environ(), "CGO_ENABLED=1")
		if output, err := command.CombinedOutput(); err != nil {
			faults = append(faults, fmt.Errorf("build %s %s: %w\n%s", program.module, program.pkg, err, output))
		}
	}
	return errors.Join(faults...)
}
