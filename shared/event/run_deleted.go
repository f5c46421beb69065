package event

// RunDeleted takes a receipt away: report, trail and artifacts go, money and facts stay.
type RunDeleted struct{}

// Kind implements Data.
func (RunDeleted) Kind() string { return "run.deleted" }

var _ = register[RunDeleted](1)
