// Command researcher makes the paid calls: run.requested becomes a provider's stream and that run.completed. It also
// decides what follows a settled cycle, asks again for steps that were lost, and clears up after deletions.
package main

import (
	"os"

	"github.com/factstream/factstream/services/researcher/research"
	"github.com/factstream/factstream/shared/service"
)

func main() { os.Exit(service.Main("researcher", service.Worker, research.Parts)) }
