// Command judge compares new facts with earlier ones: facts.distilled becomes contradictions.found.
package main

import (
	"os"

	"github.com/factstream/factstream/services/judge/judging"
	"github.com/factstream/factstream/shared/service"
)

func main() { os.Exit(service.Main("judge", service.Worker, judging.Parts)) }
