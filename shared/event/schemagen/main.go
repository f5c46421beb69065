// Command schemagen writes the JSON Schema of every event type beside its Go file. It is run by go generate; a test compares.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/factstream/factstream/shared/event"
)

func main() {
	dir := "."
	if len(os.Args) > 1 {
		dir = os.Args[1]
	}
	for _, typ := range event.Types() {
		data, _ := event.New(typ)
		schema, err := Schema(typ, data)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, strings.TrimPrefix(typ, "factstream.")+".schema.json"), schema, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "schemagen:", err)
			os.Exit(1)
		}
	}
}

// Schema gives the schema of the data of one event type. Unknown fields are allowed, since fields are only added.
func Schema(typ string, data any) ([]byte, error) {
	reflector := jsonschema.Reflector{AllowAdditionalProperties: true, DoNotReference: true, Anonymous: true}
	schema := reflector.Reflect(data)
	schema.ID = jsonschema.ID("urn:" + strings.ReplaceAll(typ, ".", ":"))
	schema.Title = typ
	out, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("schema of %s: %w", typ, err)
	}
	return append(out, '\n'), nil
}
