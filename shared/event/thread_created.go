package event

// ThreadCreated opens a thread. Its question is question 0: depth 0, first in line.
type ThreadCreated struct {
	Question string   `json:"question"` // 1 to 10,000 code points
	Title    string   `json:"title"`
	Tags     []string `json:"tags,omitempty"`
	Settings Settings `json:"settings"`
}

// Kind implements Data.
func (ThreadCreated) Kind() string { return "thread.created" }

var _ = register[ThreadCreated](1)
