package event

// FactsDistilled is what a run's report gave in one generation: accepted facts only.
type FactsDistilled struct {
	Facts             []Fact         `json:"facts"`              // added
	Support           []Support      `json:"support,omitempty"`  // this run's support of facts that were known
	Kept              []string       `json:"kept,omitempty"`     // rebuild: facts of an earlier generation that came again
	Removed           []string       `json:"removed,omitempty"`  // rebuild: facts that did not come again and had no other support
	Dropped           map[string]int `json:"dropped,omitempty"`  // what was not accepted, by cause
	LeftOut           int            `json:"left_out,omitempty"` // acceptable facts over the limit of a run
	UnresolvedMarkers int            `json:"unresolved_markers,omitempty"`
	Engine            string         `json:"engine"`
	Model             string         `json:"model,omitempty"`
	Replayed          bool           `json:"replayed,omitempty"`
}

// Fact is one claim as it was accepted. ID is a function of the thread and the fingerprint.
type Fact struct {
	ID          string   `json:"id"`
	Fingerprint string   `json:"fingerprint"`
	Statement   string   `json:"statement"`
	Confidence  float64  `json:"confidence"` // 0..1
	Tags        []string `json:"tags,omitempty"`
	Source      *Source  `json:"source,omitempty"`
	Excerpt     *Excerpt `json:"excerpt,omitempty"`
}

// Support is one more place where a known fact was found.
type Support struct {
	Fact    string   `json:"fact"`
	Source  *Source  `json:"source,omitempty"`
	Excerpt *Excerpt `json:"excerpt,omitempty"`
}

// Kind implements Data.
func (FactsDistilled) Kind() string { return "facts.distilled" }

var _ = register[FactsDistilled](1)
