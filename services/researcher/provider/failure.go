package provider

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/factstream/factstream/shared/event"
)

// Error is the one way in which a call fails. Detail is for a person: what happened, and what the provider may bill.
// It never holds the key.
type Error struct {
	Provider string // name of the provider
	Code     Code
	Status   int    // HTTP status, 0 when the failure is not one of HTTP
	Detail   string // whole sentences, one line
	// Retryable says that the same call may be made again without a person's decision.
	Retryable bool
	// RetryAfter is how long the provider asked to wait before that, at most MaxRetryAfter; 0 when it named no time.
	RetryAfter time.Duration
	// Park is the reason code with which the thread has to wait for a person whatever else holds: "no_key" (no usable
	// key) or "provider" (the provider refuses); "" when the failure alone does not say so.
	Park string
	// Err is the cause, for errors.Is; nil when there is none beyond the code.
	Err error
}

func (e *Error) Error() string { return e.Provider + ": " + string(e.Code) + ": " + e.Detail }

func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, CodeStall) hold for a failure with that code.
func (e *Error) Is(target error) bool { return target == error(e.Code) }

// Code says what kind of failure it was. It is an error, so that errors.Is finds it in a chain.
type Code string

func (c Code) Error() string { return "provider failed: " + string(c) }

const (
	// CodeTruncated: the stream ended before its terminal event. Tried again.
	CodeTruncated Code = "truncated"
	// CodeStall: nothing came for longer than the idle time, or no answer began in time. Tried again.
	CodeStall Code = "stall"
	// CodeTransport: no connection, or it broke before an answer began. Tried again.
	CodeTransport Code = "transport"
	// CodeServerError: a status of 500 or above. Tried again.
	CodeServerError Code = "server_error"
	// CodeRateLimited: 429. Tried again after RetryAfter.
	CodeRateLimited Code = "rate_limited"
	// CodeTaskError: the provider itself reported, in its stream, that the research failed. It stands.
	CodeTaskError Code = "task_error"
	// CodeProtocolError: the answer came to its end and is not what was agreed, such as complete without a report.
	CodeProtocolError Code = "protocol_error"
	// CodeHTTPError: an HTTP answer that no other code fits, such as a redirect, or 200 with another content type.
	CodeHTTPError Code = "http_error"
	// CodeEmpty: a status of success without any content.
	CodeEmpty Code = "empty"
	// CodeAuth: 401 or 403, or no key. A person has to act.
	CodeAuth Code = event.CodeAuth
	// CodePaymentRequired: 402. A person has to act.
	CodePaymentRequired Code = event.CodePaymentRequired
	// CodeBadRequest: the request was refused, by the provider (400, 413, 414, 415, 422) or before it was sent.
	CodeBadRequest Code = "bad_request"
	// CodeCancelled: the caller ended the call.
	CodeCancelled Code = "cancelled"
	// CodeTimeout: the whole call took longer than it may. It stands: a second one would take as long and cost as much.
	CodeTimeout Code = "timeout"
	// CodeEventTooLarge: one event was larger than the decoder takes. It stands: the next answer would be alike.
	CodeEventTooLarge Code = "event_too_large"
	// CodeAnswerTooLarge: the whole answer was larger than MaxAnswer. It stands, as above.
	CodeAnswerTooLarge Code = "answer_too_large"
	// CodeNotKept: the sink refused what came, so that it could not be kept. It stands.
	CodeNotKept Code = "not_kept"
)

// Reasons of Error.Park.
const (
	ParkNoKey    = "no_key"
	ParkProvider = "provider"
)

// MaxRetryAfter is the longest wait that a provider's answer can ask for; a longer one is cut to it.
const MaxRetryAfter = time.Hour

// excerptLength bounds how much of a provider's own text is shown in a failure, in bytes.
const excerptLength = 200

// FromStatus turns an HTTP answer without a stream into the failure it means. body is (the start of) the answer's body;
// now is needed for a Retry-After that names a date. Whatever the provider wrote is shown without secret.
func FromStatus(name string, status int, header http.Header, body []byte, now time.Time, secret string) *Error {
	e := &Error{Provider: name, Status: status}
	said := Excerpt(header.Get("Content-Type"), redactBytes(body, secret))
	if said != "" {
		said = ": " + said
	}
	answered := fmt.Sprintf("%s answered %d %s%s", name, status, http.StatusText(status), said)
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Code, e.Park = CodeAuth, ParkProvider
		e.Detail = sentence(answered) + " It refuses the key; save one that is valid and start again. No research was begun, so nothing should be billed."
	case status == http.StatusPaymentRequired:
		e.Code, e.Park = CodePaymentRequired, ParkProvider
		e.Detail = sentence(answered) + " The account has no credit for this call; top it up and start again. No research was begun, so nothing should be billed."
	case status == http.StatusTooManyRequests:
		e.Code, e.Retryable, e.RetryAfter = CodeRateLimited, true, RetryAfter(header, now)
		e.Detail = sentence(answered) + " It asks to wait" + waitText(e.RetryAfter) + ". No research was begun, so nothing should be billed."
	case status >= 500:
		e.Code, e.Retryable, e.RetryAfter = CodeServerError, true, RetryAfter(header, now)
		e.Detail = sentence(answered) + " The provider may still bill this call."
	case isBadRequest(status):
		e.Code = CodeBadRequest
		e.Detail = sentence(answered) + " It does not accept this request. No research was begun, so nothing should be billed."
	case status >= 300 && status < 400:
		e.Code = CodeHTTPError
		e.Detail = sentence(answered) + " A redirect is not followed, since the key would go along; correct the base URL. Nothing should be billed."
	case status >= 400:
		e.Code = CodeHTTPError
		e.Detail = sentence(answered) + " Check the base URL. Nothing should be billed."
	case status == http.StatusNoContent || len(body) == 0:
		e.Code = CodeEmpty
		e.Detail = sentence(answered) + " The answer is empty. The provider may still bill this call."
	default:
		e.Code = CodeHTTPError
		kind := header.Get("Content-Type")
		if kind == "" {
			kind = "no content type"
		}
		e.Detail = sentence(answered) + " An event stream was expected, not " + cut(kind) + ". The provider may still bill this call."
	}
	return e
}

func isBadRequest(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusRequestURITooLong,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// RetryAfter reads how long an answer asks to wait: retry-after-ms, Retry-After in seconds or as a date, or else
// X-RateLimit-Reset (seconds for each window; those whose X-RateLimit-Remaining is 0 count, the first if none says so).
// It is between 0 and MaxRetryAfter; 0 when the answer names no time, or one that has passed.
func RetryAfter(header http.Header, now time.Time) time.Duration {
	if wait, ok := number(header.Get("Retry-After-Ms"), time.Millisecond); ok {
		return wait
	}
	after := header.Get("Retry-After")
	if wait, ok := number(after, time.Second); ok {
		return wait
	}
	if date, err := http.ParseTime(after); err == nil {
		return within(date.Sub(now))
	}
	remaining := strings.Split(header.Get("X-RateLimit-Remaining"), ",")
	var first, longest time.Duration
	for i, window := range strings.Split(header.Get("X-RateLimit-Reset"), ",") {
		wait, ok := number(window, time.Second)
		if !ok {
			continue
		}
		if i == 0 {
			first = wait
		}
		if i < len(remaining) && strings.TrimSpace(remaining[i]) == "0" {
			longest = max(longest, wait)
		}
	}
	if longest > 0 {
		return longest
	}
	return first
}

// number reads a count of units, which may have a fraction.
func number(s string, unit time.Duration) (time.Duration, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || n != n {
		return 0, false
	}
	if n >= float64(MaxRetryAfter/unit) {
		return MaxRetryAfter, true
	}
	return within(time.Duration(n * float64(unit))), true
}

func within(d time.Duration) time.Duration { return min(max(d, 0), MaxRetryAfter) }

func waitText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return " " + d.Round(time.Millisecond).String()
}

// AsError returns the *Error in err's chain, or nil.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}
