package research

import "github.com/factstream/factstream/shared/fault"

// Where a test may end this process, in the order in which a run passes them.
var (
	pointDelivered = fault.New("researcher.delivered", "a requested run is in hand; nothing was done about it yet")
	pointLeased    = fault.New("researcher.leased", "it is the run's turn and no earlier answer was found; the attempt is not started")
	pointClaimed   = fault.New("researcher.claimed", "attempt.started is appended; the provider is not called")
	pointStreaming = fault.New("researcher.streaming", "a piece of the answer is in the spool; hit once for each piece")
	pointAnswered  = fault.New("researcher.answered", "the call has ended and its bytes are in the spool; nothing is saved")
	pointSaved     = fault.New("researcher.saved", "the raw answer is saved under its name; the run is not settled")
	pointKept      = fault.New("researcher.kept", "all that run.completed refers to is saved; it is not appended")
	pointSettled   = fault.New("researcher.settled", "run.completed is appended; the spool is not cleared, the message is not acknowledged")
	pointFailed    = fault.New("researcher.failed", "attempt.failed is appended; the message is not put off")
	pointNext      = fault.New("researcher.next", "a settled cycle is in hand; what comes next is not decided")
	pointDecided   = fault.New("researcher.decided", "the next runs, or the parking, are appended; the message is not acknowledged")
	pointLost      = fault.New("researcher.lost", "lost steps were found; none is asked for again")
	pointCleared   = fault.New("researcher.cleared", "the events of deleted threads are purged; their artifacts are not")
)
