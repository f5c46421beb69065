package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/factstream/factstream/cluster/up"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/lifeline"
	"github.com/factstream/factstream/shared/logging"
)

// runBus runs the embedded bus by itself until it is told to stop.
func runBus(args []string, stdout, stderr io.Writer) int {
	cfg, err := config.Load(args, os.Getenv, "factstream bus")
	if err != nil {
		fmt.Fprintf(stderr, "factstream: the configuration is not usable\n%v\n", err)
		return exitUsage
	}
	ctx, stop := lifeline.Context(context.Background())
	defer stop()
	log, _ := logging.ForProcess(cfg)
	if err := up.Bus(ctx, cfg, stdout, log); err != nil && ctx.Err() == nil {
		fmt.Fprintf(stderr, "factstream: %v\n", err)
		return exitFailed
	}
	return exitStopped
}
