// Command gateway is the way in: the HTTP API and the page, over a projection of the notebook in one SQLite file.
package main

import (
	"os"

	"github.com/factstream/factstream/services/gateway/api"
	"github.com/factstream/factstream/shared/service"
)

func main() { os.Exit(service.Main("gateway", service.Whole, api.Parts)) }
