package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/factstream/factstream/cluster/up"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/lifeline"
	"github.com/factstream/factstream/shared/logging"
)

func runUp(args []string, stdout, stderr io.Writer) int {
	const name = "factstream up"
	return runAll(name, args, os.Getenv, config.Help(name), up.Run, stdout, stderr)
}

const clusterHelp = `
Three servers
  Three NATS servers, each a process with a store of its own below the data
  directory, and two processes of every service. FACTSTREAM_HTTP is the first
  gateway's address; the second has the port after it. NATS_PORT is the first
  server's port; the others have the two after it. NATS_REPLICAS is 3, NATS_URL
  is not used, and LEASE_TTL is at least 10s. A data directory belongs to up or
  to up-cluster. A notebook goes from one to the other by a backup and a restore
  into a directory on which the other has been started once.
`

// runUpCluster is up with three servers and two of every service.
func runUpCluster(args []string, stdout, stderr io.Writer) int {
	const name = "factstream up-cluster"
	return runAll(name, args, clusterEnv(os.Getenv), config.Help(name, "NATS_URL", "NATS_REPLICAS")+clusterHelp, up.RunServers, stdout, stderr)
}

// clusterEnv is an environment in which three copies are the default.
func clusterEnv(getenv func(string) string) func(string) string {
	return func(name string) string {
		if value := getenv(name); value != "" || name != "NATS_REPLICAS" {
			return value
		}
		return strconv.Itoa(embedded.Servers)
	}
}

// runAll starts everything by run and keeps it running until it is told to stop.
func runAll(name string, args []string, getenv func(string) string, help string, run func(context.Context, up.Options) error, stdout, stderr io.Writer) int {
	verbose := false
	args = slices.DeleteFunc(slices.Clone(args), func(arg string) bool {
		is := arg == "--verbose" || arg == "-verbose"
		verbose = verbose || is
		return is
	})
	cfg, err := config.Load(args, getenv, name)
	if errors.Is(err, config.ErrHelp) {
		fmt.Fprint(stdout, help, "\nThe terminal\n",
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
	err = run(ctx, up.Options{
		Config: cfg, Bin: filepath.Dir(self), Environ: os.Environ(), Verbose: verbose,
		Out: stdout, Err: stderr, Hurry: hurry,
	})
	if errors.Is(err, up.ErrReplicas) {
		fmt.Fprintf(stderr, "factstream: the configuration is not usable\n%v\n", err)
		return exitUsage
	}
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(stderr, "factstream: %v\n", err)
		return exitFailed
	}
	return exitStopped
}

// runMember runs one of the servers of up-cluster until it is told to stop.
func runMember(args []string, stderr io.Writer) int {
	member, err := up.ParseMember(args)
	if err != nil {
		fmt.Fprintf(stderr, "factstream: %v\n", err)
		return exitUsage
	}
	cfg, err := config.Load(nil, os.Getenv, member.Name())
	if err != nil {
		fmt.Fprintf(stderr, "factstream: the configuration is not usable\n%v\n", err)
		return exitUsage
	}
	ctx, stop := lifeline.Context(context.Background())
	defer stop()
	log, _ := logging.ForProcess(cfg)
	if err := member.Serve(ctx, cfg.Data, log); err != nil && ctx.Err() == nil {
		log.Error().Err(err).Msg("stopped")
		return exitFailed
	}
	return exitStopped
}
