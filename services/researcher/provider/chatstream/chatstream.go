// Package chatstream reads the events of a chat completion stream, the form in which some research providers answer:
// unnamed events that hold deltas of the text, ended by [DONE].
package chatstream

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/factstream/factstream/services/researcher/provider"
)

// Events reads one stream. The zero value is ready to use. The report of its result is the joined text as it came,
// with whatever markup the provider puts into it.
type Events struct {
	text   strings.Builder
	finish string
	usage  json.RawMessage
	stray  []byte
}

var _ provider.Protocol = (*Events)(nil)

const (
	done       = "[DONE]"
	finishStop = "stop"
)

// chunk is one event: a piece of the text, or an error object in one of its two shapes.
type chunk struct {
	Choices []struct {
		Delta struct {
			Content string `json:"content"`
		} `json:"delta"`
		FinishReason string `json:"finish_reason"`
	} `json:"choices"`
	Usage  json.RawMessage `json:"usage"`
	Error  json.RawMessage `json:"error"`
	Errors json.RawMessage `json:"errors"`
	Type   string          `json:"type"`
}

// Take implements provider.Protocol: [DONE] is the success, unless the text was cut by its length; an error object is
// the provider's own failure.
func (s *Events) Take(_ string, data []byte) (bool, *provider.Error) {
	if string(bytes.TrimSpace(data)) == done {
		return s.done()
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		s.stray = data
		return false, nil
	}
	if c.Type == "ErrorResponse" || present(c.Error) || present(c.Errors) {
		return false, &provider.Error{Code: provider.CodeTaskError, Detail: "The provider reported an error in its stream: " + provider.Excerpt("", data)}
	}
	for _, choice := range c.Choices {
		s.text.WriteString(choice.Delta.Content)
		if choice.FinishReason != "" {
			s.finish = choice.FinishReason
		}
	}
	if present(c.Usage) {
		s.usage = c.Usage
	}
	return false, nil
}

func (s *Events) done() (bool, *provider.Error) {
	if s.finish != "" && s.finish != finishStop {
		return false, &provider.Error{Code: provider.CodeTruncated,
			Detail: "The provider ended its answer before it was whole (finish reason " + provider.Excerpt("", []byte(s.finish)) + ")"}
	}
	return true, nil
}

// Whole implements provider.Protocol: the finish reason stop counts as the end of the answer without [DONE].
func (s *Events) Whole() bool { return s.finish == finishStop }

// Late implements provider.Protocol; nothing that follows [DONE] means anything.
func (s *Events) Late(string, []byte) string { return "" }

// Stray returns the last data that was neither JSON nor [DONE].
func (s *Events) Stray() []byte { return s.stray }

// Result implements provider.Protocol.
func (s *Events) Result() provider.Result {
	return provider.Result{Report: s.text.String(), Usage: s.usage}
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }
