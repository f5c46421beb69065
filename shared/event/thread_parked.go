package event

// ThreadParked ends a thread's running: idle waits for a person, complete has nothing left that it may do.
type ThreadParked struct {
	Status string `json:"status"` // idle or complete
	Reason Reason `json:"reason"`
}

// Kind implements Data.
func (ThreadParked) Kind() string { return "thread.parked" }

var _ = register[ThreadParked](1)
