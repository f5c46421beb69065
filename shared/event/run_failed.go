package event

// Failure codes of a run that are not the provider's.
const (
	CodeCancelled         = "cancelled"
	CodeWithdrawn         = "withdrawn"
	CodeCrashLoop         = "crash_loop"
	CodeMalformed         = "malformed"
	CodeAttemptsExhausted = "attempts_exhausted"
	CodeLost              = "lost"
	CodeUnknownOutcome    = "unknown_outcome"
	CodeNoKey             = "no_key"
)

// Failure codes of a call that the provider refuses because of the account: a person has to act.
const (
	CodeAuth            = "auth_error"       // 401 or 403, or no key
	CodePaymentRequired = "payment_required" // 402
)

// RunFailed settles a run that gave no report; what it had reserved and did not cost is released.
type RunFailed struct {
	Code      string `json:"code"`
	Detail    string `json:"detail"`
	Cost      int    `json:"cost"`    // credits spent all the same; 0 when released
	Attempt   int    `json:"attempt"` // 0 when none was started
	Retryable bool   `json:"retryable,omitempty"`
}

// Kind implements Data.
func (RunFailed) Kind() string { return "run.failed" }

var _ = register[RunFailed](1)
