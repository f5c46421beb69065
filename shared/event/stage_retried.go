package event

// StageRetried asks for a stage once more. N is the generation (run) or the closing (cycle) that its outcome will carry.
type StageRetried struct {
	Stage  string `json:"stage"`
	By     string `json:"by"` // person, sweeper or model
	Reason string `json:"reason,omitempty"`
}

// Kind implements Data.
func (StageRetried) Kind() string { return "stage.retried" }

var _ = register[StageRetried](1)
