package event

// Relations of two facts.
const (
	Duplicate     = "duplicate"
	Contradiction = "contradiction"
	Distinct      = "distinct"
)

// ContradictionsFound are the verdicts on the facts of a run (or on one fact that a person added or edited), possibly none.
type ContradictionsFound struct {
	Verdicts []Verdict      `json:"verdicts"`
	Drops    []Drop         `json:"drops,omitempty"`
	Links    []Link         `json:"links,omitempty"`
	LeftOut  int            `json:"left_out,omitempty"` // pairs over the limit of a run
	Skipped  int            `json:"skipped,omitempty"`  // verdicts about a text that had changed or gone meanwhile
	Dropped  map[string]int `json:"dropped,omitempty"`  // what of the engine's answers was not accepted, by cause
	Engine   string         `json:"engine"`
	Model    string         `json:"model,omitempty"`
}

// Verdict is the relation of a newer fact to an elder one, as judged on these two texts.
type Verdict struct {
	Pair             string  `json:"pair"`
	Elder            string  `json:"elder"`                  // fact id
	ElderThread      string  `json:"elder_thread,omitempty"` // when it is another thread's
	ElderFingerprint string  `json:"elder_fingerprint"`
	Newer            string  `json:"newer"`
	NewerFingerprint string  `json:"newer_fingerprint"`
	Relation         string  `json:"relation"`
	Reason           string  `json:"reason,omitempty"`
	Related          bool    `json:"related,omitempty"` // distinct, and yet of the same thing: one adds a detail to the other
	Similarity       float64 `json:"similarity"`        // cosine
}

// Drop folds a duplicate into the elder's active root, inside one thread.
type Drop struct {
	Fact      string `json:"fact"`
	Root      string `json:"root"`
	Dismissed bool   `json:"dismissed,omitempty"` // the root was dismissed, and the newcomer with it
}

// Link says that a fact of another thread says the same, or contradicts it.
type Link struct {
	Fact        string `json:"fact"`
	Other       string `json:"other"`
	OtherThread string `json:"other_thread"`
	Relation    string `json:"relation"`
}

// Kind implements Data.
func (ContradictionsFound) Kind() string { return "contradictions.found" }

var _ = register[ContradictionsFound](1)
