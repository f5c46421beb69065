// Command tinymodels installs the tiny models on an Ollama server and waits for the server first.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/ollama/ollama/api"

	"github.com/factstream/factstream/shared/model/ollama"
	"github.com/factstream/factstream/shared/model/ollama/realtest/tiny"
)

func main() {
	host := flag.String("host", "", "the server, as in OLLAMA_HOST")
	flag.Parse()
	if err := run(*host); err != nil {
		fmt.Fprintln(os.Stderr, "tinymodels:", err)
		os.Exit(1)
	}
}

func run(host string) error {
	base, err := ollama.ParseHost(host)
	if err != nil {
		return err
	}
	client := api.NewClient(base, http.DefaultClient)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := tiny.Await(ctx, client); err != nil {
		return err
	}
	for _, name := range tiny.Names() {
		if err := tiny.Install(ctx, client, name, name, 1); err != nil {
			return err
		}
		fmt.Println("installed", name)
	}
	return nil
}
