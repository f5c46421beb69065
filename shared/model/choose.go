package model

import (
	"context"
	"fmt"
	"time"
)

// choiceWait bounds how long Choose waits for a server that accepts a connection and then says nothing.
const choiceWait = 5 * time.Second

// Choose turns the setting of a thread (EngineAuto, EngineOllama or EngineExtractive; "" is auto) into the engine that it will keep,
// and says why, for people. Auto is ollama if it answers and both of its models are installed, else extractive. It fails if ctx ends
// first, since that tells nothing about the model and the choice lasts, and on a setting that is none of these.
func Choose(ctx context.Context, setting string, ollama Model) (engine, why string, err error) {
	switch setting {
	case EngineOllama, EngineExtractive:
		return setting, "chosen in the settings", nil
	case EngineAuto, "":
	default:
		return "", "", fmt.Errorf("unknown model engine %q: auto, ollama or extractive", setting)
	}
	wait, cancel := context.WithTimeout(ctx, choiceWait)
	defer cancel()
	info, err := ollama.Info(wait)
	if cause := ended(ctx); cause != nil {
		return "", "", fmt.Errorf("choose a model engine: %w", cause)
	}
	if err != nil {
		return EngineExtractive, fmt.Sprintf("no usable language model: %v", err), nil
	}
	return EngineOllama, fmt.Sprintf("Ollama answers and has %s and %s", info.ChatModel, info.EmbedModel), nil
}
