package tabstack

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/factstream/factstream/services/researcher/provider"
)

// Name is the provider's name.
const Name = "tabstack"

// The two terminal events. Every other name is progress, and the list of those is the provider's.
const (
	eventComplete = "complete"
	eventError    = "error"
)

// Events reads the events of one Tabstack stream. The zero value is ready to use.
type Events struct {
	result provider.Result
	stray  []byte
}

var _ provider.Protocol = (*Events)(nil)

// Take implements provider.Protocol: complete with a report is the success, error the provider's own failure.
func (s *Events) Take(name string, data []byte) (bool, *provider.Error) {
	switch name {
	case eventComplete:
		return s.takeComplete(data)
	case eventError:
		return false, taskError(data)
	}
	if !json.Valid(data) {
		s.stray = data
	}
	return false, nil
}

// Whole implements provider.Protocol: without complete there is no report.
func (s *Events) Whole() bool { return false }

// Late implements provider.Protocol.
func (s *Events) Late(name string, data []byte) string {
	if name != eventError {
		return ""
	}
	return "After its report the provider sent an error, which changes nothing in the report: " + taskError(data).Detail
}

// Stray returns the last data that was no JSON, such as a proxy's message inside the stream.
func (s *Events) Stray() []byte { return s.stray }

// Result implements provider.Protocol.
func (s *Events) Result() provider.Result { return s.result }

func (s *Events) takeComplete(data []byte) (bool, *provider.Error) {
	fields, ok := object(data)
	if !ok {
		return false, &provider.Error{Code: provider.CodeProtocolError, Detail: "The provider said complete, but what it sent is not a JSON object"}
	}
	report := str(fields["report"])
	if strings.TrimSpace(report) == "" {
		return false, &provider.Error{Code: provider.CodeProtocolError, Detail: "The provider said complete without sending a report"}
	}
	s.result = result(report, fields)
	return true, nil
}

// taskError is the failure that an error event reports: {"error": {"name", "message"}, "message", "activity", "iteration"}.
func taskError(data []byte) *provider.Error {
	said := provider.Excerpt("", data)
	if fields, ok := object(data); ok {
		if len(fields) == 0 {
			said = ""
		}
		cause, _ := object(fields["error"])
		if name := provider.Excerpt("", []byte(str(cause["name"]))); name != "" && !strings.Contains(said, name) {
			said = name + ": " + said
		}
		if activity := provider.Excerpt("", []byte(str(fields["activity"]))); activity != "" {
			said += fmt.Sprintf(" (while %s", activity)
			if n := integer(fields["iteration"]); n > 0 {
				said += fmt.Sprintf(", iteration %d", n)
			}
			said += ")"
		}
	}
	if said == "" {
		said = "no reason given"
	}
	return &provider.Error{Code: provider.CodeTaskError, Detail: "The provider reported that the research failed: " + said}
}
