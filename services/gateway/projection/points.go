package projection

import "github.com/factstream/factstream/shared/fault"

// The places of a batch at which a test can end the process.
var (
	pointFolded  = fault.New("gateway.folded", "a batch is folded in memory; it is not in notebook.db")
	pointWritten = fault.New("gateway.written", "a batch and its cursor are in notebook.db; nobody was told")
)
