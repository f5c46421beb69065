package api

import "github.com/factstream/factstream/shared/fault"

// The places of a write at which a test can end the process.
var (
	pointAsked    = fault.New("gateway.asked", "a command is understood; nothing is appended")
	pointAppended = fault.New("gateway.appended", "a command is appended; it is not answered, and reads may not see it")
	pointBuried   = fault.New("gateway.buried", "a tombstone is appended; nothing is purged")
)
