package event

// ThreadStarted lets autopilot act.
type ThreadStarted struct {
	Reason Reason `json:"reason"`
}

// Kind implements Data.
func (ThreadStarted) Kind() string { return "thread.started" }

var _ = register[ThreadStarted](1)
