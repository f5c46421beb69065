package event

// ThreadPaused says that a person pressed Pause.
type ThreadPaused struct {
	Reason Reason `json:"reason"`
}

// Kind implements Data.
func (ThreadPaused) Kind() string { return "thread.paused" }

var _ = register[ThreadPaused](1)
