package event

// ThreadArchived puts a thread out of the daily list, or back.
type ThreadArchived struct {
	Archived bool `json:"archived"`
}

// Kind implements Data.
func (ThreadArchived) Kind() string { return "thread.archived" }

var _ = register[ThreadArchived](1)
