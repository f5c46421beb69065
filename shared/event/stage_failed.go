package event

// Classes of a failed stage on which others decide.
const (
	ClassModelAway = "model_away" // retried by itself when the model answers again
	ClassCrashLoop = "crash_loop"
	ClassMalformed = "malformed"
	ClassLost      = "lost"
)

// StageFailed ends a stage without an outcome. The entity is the run or the cycle.
type StageFailed struct {
	Stage  string `json:"stage"`
	Class  string `json:"class"`
	Reason string `json:"reason"` // for a person
}

// Kind implements Data.
func (StageFailed) Kind() string { return "stage.failed" }

var _ = register[StageFailed](1)
