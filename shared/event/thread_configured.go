package event

// ThreadConfigured changes what is given and leaves the rest.
type ThreadConfigured struct {
	Title        *string   `json:"title,omitempty"`
	Tags         *[]string `json:"tags,omitempty"`
	Provider     *string   `json:"provider,omitempty"`
	Mode         *string   `json:"mode,omitempty"`
	Depth        *int      `json:"depth,omitempty"`
	Batch        *int      `json:"batch,omitempty"`
	Auto         *bool     `json:"auto,omitempty"`
	Engine       *string   `json:"engine,omitempty"`
	Budget       *int      `json:"budget,omitempty"`
	AnswerBudget *int      `json:"answer_budget,omitempty"` // -1 takes the limit away
}

// Kind implements Data.
func (ThreadConfigured) Kind() string { return "thread.configured" }

var _ = register[ThreadConfigured](1)
