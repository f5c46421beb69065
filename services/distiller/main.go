// Command distiller turns reports into facts: run.completed becomes facts.distilled.
package main

import (
	"os"

	"github.com/factstream/factstream/services/distiller/distil"
	"github.com/factstream/factstream/shared/service"
)

func main() { os.Exit(service.Main("distiller", service.Worker, distil.Parts)) }
