package event

// RunRequested reserves the cost of one paid call.
type RunRequested struct {
	Question  string `json:"question"` // id
	Text      string `json:"text"`     // what is asked, verbatim
	Provider  string `json:"provider"`
	Mode      string `json:"mode,omitempty"`
	Depth     int    `json:"depth"`
	Cycle     int    `json:"cycle"`      // 1, 2, 3 in a thread
	CycleSize int    `json:"cycle_size"` // runs of the cycle
	RunKind   string `json:"kind"`       // cycle, manual or watch
	Cost      int    `json:"cost"`       // credits reserved until the run's terminal event
	Nocache   bool   `json:"nocache,omitempty"`
	Replay    bool   `json:"replay,omitempty"` // a recorded stream instead of the provider
}

// Kind implements Data.
func (RunRequested) Kind() string { return "run.requested" }

var _ = register[RunRequested](1)
