package event

// ThreadDeleted is the tombstone of a thread and stays for ever: what it cost remains known.
type ThreadDeleted struct {
	Spent   int     `json:"spent"`   // credits
	Dollars float64 `json:"dollars"` // Brave
	Runs    int     `json:"runs"`
}

// Kind implements Data.
func (ThreadDeleted) Kind() string { return "thread.deleted" }

var _ = register[ThreadDeleted](1)
