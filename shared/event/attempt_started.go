package event

// AttemptStarted is the claim of one attempt, appended before money can be spent. N is the attempt, from 1.
type AttemptStarted struct {
	Holder string `json:"holder,omitempty"` // which process
}

// Kind implements Data.
func (AttemptStarted) Kind() string { return "attempt.started" }

var _ = register[AttemptStarted](1)
