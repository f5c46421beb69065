package event

// QuestionDismissed takes a question out of the line; it is not proposed again.
type QuestionDismissed struct{}

// Kind implements Data.
func (QuestionDismissed) Kind() string { return "question.dismissed" }

var _ = register[QuestionDismissed](1)
