package event

import "time"

// AttemptFailed ends an attempt that is not the run's last word.
type AttemptFailed struct {
	Code    string     `json:"code"`
	Detail  string     `json:"detail"`
	RetryAt *time.Time `json:"retry_at,omitempty"` // not before
}

// Kind implements Data.
func (AttemptFailed) Kind() string { return "attempt.failed" }

var _ = register[AttemptFailed](1)
