// Command factstream runs a notebook on this machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/factstream/factstream/cluster/up"
	"github.com/factstream/factstream/shared/config"
)

// version is set by the linker in releases.
var version = "dev"

const usage = `Factstream, a research notebook on your own machine.

  factstream up [flags]    start everything, print where it is, stop with Ctrl-C
  factstream up --help     every flag and environment variable
  factstream faults        the points at which a test can end, stop, delay or fail
                           a service, and how
  factstream backup FILE   the whole notebook into one file, also while it runs
  factstream restore FILE  a backup into an empty place
  factstream verify [FILE] compare stream, notebook.db, artifacts and a backup
  factstream version       what this is
  factstream help          this text

Exit codes: 0 done, or stopped when asked to; 1 it could not be done, or verify
found a difference; 2 the command line or a variable is wrong.
`

// The exit codes.
const (
	exitStopped = 0
	exitFailed  = 1
	exitUsage   = 2
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

func run(args []string, stdout, stderr io.Writer) int {
	command := ""
	if len(args) > 0 {
		command, args = args[0], args[1:]
	}
	switch command {
	case "up":
		return runUp(args, stdout, stderr)
	case "bus": // for harnesses that end the bus alone; not in the usage, since up holds one
		return runBus(args, stdout, stderr)
	case "faults":
		return runFaults(stdout, stderr)
	case "backup":
		return runBackup(args, stdout, stderr)
	case "restore":
		return runRestore(args, stdout, stderr)
	case "verify":
		return runVerify(args, stdout, stderr)
	case "version", "--version":
		fmt.Fprintln(stdout, describe())
		return exitStopped
	case "help", "--help", "-h":
		fmt.Fprint(stdout, usage)
		return exitStopped
	case "":
		fmt.Fprint(stderr, usage)
	default:
		fmt.Fprintf(stderr, "factstream: there is no command %q\n\n%s", command, usage)
	}
	return exitUsage
}

func runUp(args []string, stdout, stderr io.Writer) int {
	verbose := false
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		is := arg == "--verbose" || arg == "-verbose"
		verbose = verbose || is
		return is
	})
	cfg, err := config.Load(args, os.Getenv, "factstream up")
	if errors.Is(err, config.ErrHelp) {
		fmt.Fprint(stdout, config.Help("factstream up"), "\nThe terminal\n",
			config.HelpEntry("--verbose", "(no variable)", "show every line of the logs, not only warnings and errors"))
		return exitStopped
	}
	if err != nil {
		fmt.Fprintf(stderr, "factstream: the configuration is not usable\n%v\n", err)
		return exitUsage
	}
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintf(stderr, "factstream: where is this program? %v\n", err)
		return exitFailed
	}
	ctx, hurry, stop := signals()
	defer stop()
	err = up.Run(ctx, up.Options{
		Config: cfg, Bin: filepath.Dir(self), Environ: os.Environ(), Verbose: verbose,
		Out: stdout, Err: stderr, Hurry: hurry,
	})
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(stderr, "factstream: %v\n", err)
		return exitFailed
	}
	return exitStopped
}

// signals ends ctx at the first of Ctrl-C, SIGTERM and the terminal's end, and closes hurry at the second.
func signals() (ctx context.Context, hurry <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	now := make(chan struct{})
	got := make(chan os.Signal, 2)
	signal.Notify(got, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		<-got
		cancel()
		<-got
		close(now)
	}()
	return ctx, now, func() {
		signal.Stop(got)
		cancel()
	}
}

// describe is the version in one line, with the commit it was built from where Go knows it.
func describe() string {
	text := "factstream " + version
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				text += " " + setting.Value
			}
		}
	}
	return fmt.Sprintf("%s (%s %s/%s)", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
