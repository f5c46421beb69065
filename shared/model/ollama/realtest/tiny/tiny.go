// Package tiny writes language models and embedding models of a few hundred kilobytes with random weights, in the file format GGUF,
// and installs them on an Ollama server. What they say means nothing, but the server loads them, holds them to a JSON schema,
// counts their tokens and unloads them as it does real ones, within milliseconds.
package tiny

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ollama/ollama/api"
)

// Names of the models that Install makes.
const (
	Chat    = "tiny-chat"    // closes strings and lists soon, so that an answer under a schema is short
	Think   = "tiny-think"   // has a template with thoughts, and closes them soon
	Endless = "tiny-endless" // never ends by itself, unless a schema ends it
	Loop    = "tiny-loop"    // writes the same letter until it is stopped
	Embed   = "tiny-embed"   // bert with learnt positions
	Nomic   = "tiny-nomic"   // nomic-bert, the architecture of nomic-embed-text
)

// Sizes of the models.
const (
	ChatContext  = 1 << 17 // tokens; one byte is about one token
	EmbedContext = 512
	Dimension    = 32 // of the embeddings
)

const template = `{{ range .Messages }}<|{{ .Role }}|>{{ .Content }}{{ end }}<|assistant|>`

const thinkingTemplate = `{{ range .Messages }}<|{{ .Role }}|>{{ if .Thinking }}<think>{{ .Thinking }}</think>{{ end }}{{ .Content }}{{ end }}` +
	`<|assistant|>{{ if .Think }}<think>{{ end }}`

// Names lists all models.
func Names() []string { return []string{Chat, Think, Endless, Loop, Embed, Nomic} }

// Await returns nil as soon as the server of client answers, or the last error when ctx ends before.
func Await(ctx context.Context, client *api.Client) error {
	const pause = 50 * time.Millisecond
	for {
		err := client.Heartbeat(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the Ollama server: %w", err)
		case <-time.After(pause):
		}
	}
}

// Install makes a model of Names on the server of client under the tag given, in place of one that has it. Another seed makes
// other weights, so another digest.
func Install(ctx context.Context, client *api.Client, name, tag string, seed uint64) error {
	file, err := Model(name, seed)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(file)
	digest := "sha256:" + hex.EncodeToString(sum[:])
	// A server that has the file answers before it has read it, which may look like a broken connection: creating the model tells.
	sent := client.CreateBlob(ctx, digest, bytes.NewReader(file))
	request := &api.CreateRequest{Model: tag, Files: map[string]string{name + ".gguf": digest}}
	switch name {
	case Chat, Endless, Loop:
		request.Template = template
	case Think:
		request.Template = thinkingTemplate
	}
	if err := client.Create(ctx, request, func(api.ProgressResponse) error { return nil }); err != nil {
		return fmt.Errorf("create the model %s: %w", tag, errors.Join(sent, err))
	}
	return nil
}

// Model gives the file of a model of Names: the same for the same seed.
func Model(name string, seed uint64) ([]byte, error) {
	switch name {
	case Chat, Think, Endless, Loop:
		return chat(name, seed), nil
	case Embed:
		return embedding("bert", name, seed), nil
	case Nomic:
		return embedding("nomic-bert", name, seed), nil
	}
	return nil, fmt.Errorf("there is no model %q, want one of %v", name, Names())
}

// weights draws the values of tensors.
type weights struct{ source *rand.Rand }

func drawn(seed uint64) weights { return weights{rand.New(rand.NewPCG(seed, 0))} }

// matrix has normally distributed values around 0.
func (w weights) matrix(name string, deviation float64, dimensions ...int) tensor {
	t := constant(name, 0, dimensions...)
	for i := range t.values {
		t.values[i] = float32(w.source.NormFloat64() * deviation)
	}
	return t
}

func constant(name string, value float32, dimensions ...int) tensor {
	size := 1
	for _, d := range dimensions {
		size *= d
	}
	return tensor{name: name, dimensions: dimensions, values: slices.Repeat([]float32{value}, size)}
}
