package event

// QuestionMoved gives a pending question a new rank; lower is asked earlier.
type QuestionMoved struct {
	Rank float64 `json:"rank"`
}

// Kind implements Data.
func (QuestionMoved) Kind() string { return "question.moved" }

var _ = register[QuestionMoved](1)
