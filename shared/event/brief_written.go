package event

// BriefWritten is the prose of a closing: every sentence names facts.
type BriefWritten struct {
	RunCount         int            `json:"run_count"`
	Findings         []CitedText    `json:"findings"`
	Disputed         []DisputedText `json:"disputed"`
	Gaps             []string       `json:"gaps"`
	Relationships    []CitedText    `json:"relationships"`
	Withheld         []string       `json:"withheld,omitempty"` // facts that are no findings since they repeat a side of an open dispute, or rest on one
	DroppedSentences int            `json:"dropped_sentences"`
	Dropped          map[string]int `json:"dropped,omitempty"` // by cause
	Markdown         string         `json:"markdown"`
	Engine           string         `json:"engine"`
	Model            string         `json:"model,omitempty"`
}

// CitedText is a sentence with the ids of the facts that it rests on.
type CitedText struct {
	Text  string   `json:"text"`
	Facts []string `json:"facts"`
}

// DisputedText is a sentence about one open contradiction.
type DisputedText struct {
	Text          string `json:"text"`
	Contradiction string `json:"contradiction"` // pair id
}

// Kind implements Data.
func (BriefWritten) Kind() string { return "brief.written" }

var _ = register[BriefWritten](1)
