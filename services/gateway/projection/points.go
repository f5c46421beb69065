package projection

import "github.com/factstream/factstream/shared/fault"

// The places of a batch at which a test can end the process.
var (
	pointFolded  = fault.New("gateway.folded", "a batch is folded in memory; its transaction is written and not committed")
	pointWritten = fault.New("gateway.written", "a batch and its cursor are in notebook.db; nobody was told")
)
