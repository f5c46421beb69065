package event

// CoverageMapped is the map of a thread's topics. Fewer than 3 facts make a topic thin.
type CoverageMapped struct {
	Topics []Topic `json:"topics"`
	Engine string  `json:"engine"`
	Model  string  `json:"model,omitempty"`
}

// Topic keeps its id from map to map.
type Topic struct {
	ID    string   `json:"id"`
	Name  string   `json:"name"`
	Facts []string `json:"facts"` // fact ids
}

// Kind implements Data.
func (CoverageMapped) Kind() string { return "coverage.mapped" }

var _ = register[CoverageMapped](1)
