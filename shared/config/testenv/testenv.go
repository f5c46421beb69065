// Package testenv keeps tests away from the developer's environment: no key in it can let a test reach a paid provider.
// The tests of every package that could call one, or that starts a process that could, begin with it:
//
//	func TestMain(m *testing.M) { testenv.Main(m) }
package testenv

import (
	"fmt"
	"os"

	"github.com/factstream/factstream/shared/config"
)

// Runner is the part of *testing.M that Main needs.
type Runner interface{ Run() int }

// Main clears the environment and runs the tests.
func Main(m Runner) {
	Clear()
	os.Exit(m.Run())
}

// Clear unsets every variable that config.Load reads, keys first among them, and sets OFFLINE, for this process and for
// the children that inherit its environment. A TestMain of its own calls it first.
func Clear() {
	for _, name := range config.Variables() {
		if err := os.Unsetenv(name); err != nil {
			panic(fmt.Sprintf("testenv: unset %s: %v", name, err))
		}
	}
	if err := os.Setenv("OFFLINE", "1"); err != nil {
		panic(fmt.Sprintf("testenv: set OFFLINE: %v", err))
	}
}
