package event

// ThreadSettled says that the chain of a closing is finished. N is the closing, the entity is the cycle.
type ThreadSettled struct {
	Failures []StageFailure `json:"failures,omitempty"` // of the closing's own steps
}

// StageFailure names a step that failed.
type StageFailure struct {
	Stage  string `json:"stage"`
	Class  string `json:"class,omitempty"`
	Reason string `json:"reason"`
}

// Kind implements Data.
func (ThreadSettled) Kind() string { return "thread.settled" }

var _ = register[ThreadSettled](1)
