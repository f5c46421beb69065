package event

// QuestionsProposed are the follow-ups of a cycle, at most 5.
type QuestionsProposed struct {
	Questions []ProposedQuestion `json:"questions"`
	Dropped   map[string]int     `json:"dropped,omitempty"` // how many proposals were left out, by cause
	Repeats   bool               `json:"repeats,omitempty"` // there were proposals, and all of them repeated known questions
	Engine    string             `json:"engine"`
}

// ProposedQuestion is one follow-up.
type ProposedQuestion struct {
	ID        string  `json:"id"`
	Text      string  `json:"text"`
	Score     float64 `json:"score"` // 0..1
	Depth     int     `json:"depth"` // depth of its parent run + 1
	ParentRun string  `json:"parent_run,omitempty"`
}

// Kind implements Data.
func (QuestionsProposed) Kind() string { return "questions.proposed" }

var _ = register[QuestionsProposed](1)
