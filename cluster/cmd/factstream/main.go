// Command factstream runs a notebook on this machine.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/factstream/factstream/cluster/up"
)

// version is set by the linker in releases.
var version = "dev"

const usage = `Factstream, a research notebook on your own machine.

  factstream up [flags]    start everything, print where it is, stop with Ctrl-C
  factstream up --help     every flag and environment variable
  factstream up-cluster    the same with three NATS servers and two of every
                           service: any one process may be lost
  factstream faults        the points at which a test can end, stop, delay or
                           fail a service, and how
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
	case "up-cluster":
		return runUpCluster(args, stdout, stderr)
	case up.MemberCommand: // a process of up-cluster; not in the usage
		return runMember(args, stderr)
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
