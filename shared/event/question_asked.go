package event

// QuestionAsked is a person's question; its depth is 0.
type QuestionAsked struct {
	Text   string `json:"text"`
	Origin string `json:"origin"` // human
}

// Kind implements Data.
func (QuestionAsked) Kind() string { return "question.asked" }

var _ = register[QuestionAsked](1)
