// Command briefer ends cycles: when all runs of one have their verdicts, it plans what to ask next, writes the brief and
// maps the topics, and says that the cycle is settled.
package main

import (
	"os"

	"github.com/factstream/factstream/services/briefer/brief"
	"github.com/factstream/factstream/shared/service"
)

func main() { os.Exit(service.Main("briefer", service.Worker, brief.Parts)) }
