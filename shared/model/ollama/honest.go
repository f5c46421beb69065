package ollama

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
)

const maxErrorBody = 64 << 10 // bytes of an error's body that are read

// honest is a transport that gives every error response a body of one JSON line with an "error". Ollama's streaming client reads
// the status only when it finds a line, so a 429 or 503 without a body would pass as an empty, successful answer.
type honest struct{ next *http.Transport }

func (h honest) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := h.next.RoundTrip(req)
	if err != nil || resp.StatusCode < http.StatusBadRequest {
		return resp, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	resp.Body.Close()
	if err != nil {
		return nil, err
	}
	var said struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(body, &said) != nil || said.Error == "" {
		if said.Error = string(bytes.TrimSpace(body)); said.Error == "" {
			said.Error = http.StatusText(resp.StatusCode)
		}
	}
	line, err := json.Marshal(said)
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(line))
	resp.ContentLength = int64(len(line))
	return resp, nil
}

// CloseIdleConnections lets http.Client reach the transport's own.
func (h honest) CloseIdleConnections() { h.next.CloseIdleConnections() }
