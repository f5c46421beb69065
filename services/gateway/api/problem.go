package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"

	"github.com/danielgtaylor/huma/v2"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/factstream/factstream/jetstream/batch"
	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/services/gateway/projection"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/settings"
	"github.com/factstream/factstream/shared/text"
)

// typePrefix and a code make the type of a problem. Codes are stable.
const typePrefix = "urn:factstream:problem:"

// problemType is the media type of RFC 9457.
const problemType = "application/problem+json"

// Problem is an error as the API tells it (RFC 9457). Fields stand beside the others in the JSON object.
type Problem struct {
	Type   string         `json:"type" doc:"Stable; for programs"`
	Title  string         `json:"title"`
	Status int            `json:"status"`
	Detail string         `json:"detail" doc:"What happened, what was kept and what to do; for people"`
	Errors []FieldProblem `json:"errors,omitempty" doc:"What is wrong with single fields"`
	Fields map[string]any `json:"-"`
}

// FieldProblem names a field of a request and what is wrong with it. The value is left out: it may be a secret.
type FieldProblem struct {
	Location string `json:"location" doc:"Such as body.budget or query.stale"`
	Message  string `json:"message"`
}

func problem(status int, code, format string, args ...any) *Problem {
	return &Problem{Type: typePrefix + code, Title: http.StatusText(status), Status: status, Detail: fmt.Sprintf(format, args...)}
}

// Error is the detail.
func (p *Problem) Error() string { return p.Detail }

// GetStatus is the HTTP status.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType is that of RFC 9457, whatever the request accepts.
func (p *Problem) ContentType(string) string { return problemType }

// TransformSchema says that a problem may have members of its own kind.
func (p *Problem) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.AdditionalProperties = true
	return s
}

// MarshalJSON puts Fields beside the fixed members, which win.
func (p *Problem) MarshalJSON() ([]byte, error) {
	body := map[string]any{}
	maps.Copy(body, p.Fields)
	body["type"], body["title"], body["status"], body["detail"] = p.Type, p.Title, p.Status, p.Detail
	if len(p.Errors) > 0 {
		body["errors"] = p.Errors
	}
	return json.Marshal(body)
}

func (p *Problem) with(field string, value any) *Problem {
	if p.Fields == nil {
		p.Fields = map[string]any{}
	}
	p.Fields[field] = value
	return p
}

// write answers a plain request with the problem.
func (p *Problem) write(w http.ResponseWriter) {
	body, err := json.Marshal(p)
	if err != nil {
		http.Error(w, p.Detail, p.Status)
		return
	}
	w.Header().Set("Content-Type", problemType)
	w.WriteHeader(p.Status)
	_, _ = w.Write(body) // who hung up needs no answer
}

// The framework makes its own errors through this variable; it is set once for the process, before any API is made.
func init() {
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		p := problem(status, codeOf(status), "%s", message)
		for _, err := range errs {
			if err == nil {
				continue
			}
			var detail huma.ErrorDetailer
			if !errors.As(err, &detail) {
				p.Errors = append(p.Errors, FieldProblem{Message: err.Error()})
				continue
			}
			d := detail.ErrorDetail()
			p.Errors = append(p.Errors, plainly(d.Location, d.Message))
		}
		switch {
		case status == http.StatusUnsupportedMediaType: // as of curl -d without the header
			if len(p.Errors) > 0 {
				message = p.Errors[0].Message
			}
			p.Detail = "The body is not sent as JSON (" + message + "). Nothing was changed; send JSON with the header Content-Type: application/json."
		case len(p.Errors) == 0 && status == http.StatusBadRequest:
			p.Detail = "The request cannot be read: " + message + ". Nothing was changed."
		case len(p.Errors) > 0:
			p.Detail = fmt.Sprintf("The request is not valid: %s (%s). Nothing was changed.", p.Errors[0].Message, p.Errors[0].Location)
		}
		return p
	}
}

// ofAnotherType is how the JSON decoder of Go tells a number that its integers do not take.
var ofAnotherType = regexp.MustCompile(`^json: cannot unmarshal number (\S+) into Go struct field [^.]+\.(\S+) of type u?int`)

// plainly names the field and what it takes where the framework tells what the decoder said.
func plainly(location, message string) FieldProblem {
	if m := ofAnotherType.FindStringSubmatch(message); m != nil {
		return FieldProblem{Location: location + "." + m[2], Message: text.Truncate(m[1], 40) + " is too large, or not written as a plain whole number"}
	}
	return FieldProblem{Location: location, Message: message}
}

func codeOf(status int) string {
	switch status {
	case http.StatusBadRequest:
		return "malformed-request"
	case http.StatusNotFound:
		return "not-found"
	case http.StatusMethodNotAllowed:
		return "method-not-allowed"
	case http.StatusRequestEntityTooLarge:
		return "too-large"
	case http.StatusUnsupportedMediaType:
		return "unsupported-media-type"
	case http.StatusUnprocessableEntity:
		return "invalid-request"
	}
	return "error"
}

// problemOf turns whatever a handler met into what is told. What has no telling of its own is logged and told as an internal error.
func (s *Server) problemOf(err error) error {
	if err == nil {
		return nil
	}
	var told *Problem
	var refusal *notebook.Refusal
	var key *settings.KeyError
	var values *config.Error
	switch {
	case errors.As(err, &told):
		return told
	case errors.As(err, &refusal):
		p := problem(refusal.Status, refusal.Code, "%s", refusal.Text)
		if refusal.Status == http.StatusUnprocessableEntity {
			p.Detail += " Nothing was changed."
		}
		p.Fields = refusal.Fields
		return p
	case errors.As(err, &key):
		return problem(http.StatusConflict, "key-unreadable", "The %s. Nothing was spent.", key.Error())
	case errors.As(err, &values):
		p := problem(http.StatusUnprocessableEntity, "invalid-settings", "Some values are not allowed, and nothing was saved.")
		for _, v := range values.Problems {
			p.Errors = append(p.Errors, FieldProblem{Location: "body." + v.Name, Message: v.Allowed})
		}
		if len(values.Problems) > 0 {
			p.Detail = fmt.Sprintf("%s: %s. Nothing was saved.", values.Problems[0].Name, values.Problems[0].Allowed)
		}
		return p
	case errors.Is(err, batch.ErrTooLarge):
		return problem(http.StatusRequestEntityTooLarge, "too-large", "The request makes an event that is too large for the bus. Nothing was changed; send less in one request.")
	case errors.Is(err, projection.ErrNotFound):
		return problem(http.StatusNotFound, "not-found", "There is nothing here by that id: it is mistyped, or what it named was deleted. The lists of a thread name what there is.")
	case errors.Is(err, projection.ErrPending):
		return problem(http.StatusServiceUnavailable, "text-unavailable", "The text is kept, but the object store does not give it at this moment. Try again.")
	case isAway(err):
		s.Log.Warn().Err(err).Msg("the bus does not answer")
		return problem(http.StatusServiceUnavailable, "bus-away", "The message bus does not answer at this moment. Nothing was changed; try again.")
	}
	s.Log.Error().Err(err).Msg("request failed")
	return problem(http.StatusInternalServerError, "internal", "Something went wrong inside; the log of the gateway says what.")
}

// isAway says that an error is one of a bus (or a caller) that is away, not of the request.
func isAway(err error) bool {
	for _, away := range []error{
		nats.ErrTimeout, nats.ErrNoResponders, nats.ErrConnectionClosed, nats.ErrDisconnected, nats.ErrReconnectBufExceeded,
		jetstream.ErrNoStreamResponse, context.DeadlineExceeded, context.Canceled, projector.ErrStopped,
	} {
		if errors.Is(err, away) {
			return true
		}
	}
	return false
}

// lists says where what a path names is listed.
var lists = map[string]string{
	"thread": base + "/threads", "run": base + "/threads/{thread}/runs", "fact": base + "/threads/{thread}/facts", "question": base + "/threads/{thread}/questions",
	"dead letter": base + "/dead", "bad event": "/readyz",
}

func notFound(what, id string) *Problem {
	return problem(http.StatusNotFound, "not-found", "There is no %s %q. GET %s lists those that there are.", what, text.Truncate(id, 80), lists[what])
}

// uncertain tells that a write may or may not have happened, with the key by which asking again does it once.
func uncertain(u *notebook.Uncertain, key string) *Problem {
	return problem(http.StatusServiceUnavailable, "outcome-unknown",
		"The bus did not confirm the change in time: it may or may not be stored. Send the same request again with the header Idempotency-Key: %s; it is then done once.", key).
		with("idempotency_key", key).with("thread", u.Thread)
}
