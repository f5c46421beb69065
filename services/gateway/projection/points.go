package projection

import "github.com/factstream/factstream/shared/fault"

// The places of a batch at which a test can end the process.
var (
	pointFolded  = fault.New("gateway.folded", "some events are folded in memory; their transaction is written and not committed")
	pointWritten = fault.New("gateway.written", "some events and the cursor behind them are in notebook.db; nobody who waits for that was told")
)
