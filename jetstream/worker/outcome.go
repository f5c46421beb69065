package worker

import (
	"errors"
	"fmt"
	"time"
)

// Classes of failures that the worker itself finds.
const (
	ClassCrashLoop = "crash_loop" // delivered MaxDelivered times
	ClassMalformed = "malformed"  // could not be decoded
	ClassTimeout   = "timeout"    // took longer than the deadline
)

// Failure is why a step ended without success.
type Failure struct {
	Class string // machine-readable, of GiveUp, Later or one of the classes above
	Err   error  // for people; never nil

	delay time.Duration
}

type outcomeError struct {
	verdict verdict
	class   string
	delay   time.Duration
	err     error
}

func (e *outcomeError) Error() string { return e.err.Error() }
func (e *outcomeError) Unwrap() error { return e.err }

// Later has the message delivered again after delay, at most MaxLater times; then
// the step is given up with class. It is for what is not ready, such as a model
// that is away, and not for errors.
func Later(class string, delay time.Duration, err error) error {
	return &outcomeError{later, class, delay, orUnknown(err)}
}

// Leave leaves a message unanswered, for a step that another process works on by a later delivery: whatever this one answered would take
// the message from that one, or end it. If nobody does, it comes again after AckWait.
func Leave(err error) error { return &outcomeError{leave, "", 0, orUnknown(err)} }

// GiveUp ends the step: OnGiveUp is called with class, then the message is done.
func GiveUp(class string, err error) error {
	return &outcomeError{giveUp, class, 0, orUnknown(err)}
}

// Malformed ends the step with ClassMalformed and keeps the message in DEAD.
func Malformed(err error) error { return GiveUp(ClassMalformed, err) }

// Backoff is the delay for Later by the number of deliveries so far: 10 s,
// doubling to 5 minutes.
func Backoff(numDelivered int) time.Duration {
	return doubling(10*time.Second, 5*time.Minute, numDelivered)
}

func doubling(first, most time.Duration, n int) time.Duration {
	d := first
	for range n - 1 {
		if d *= 2; d >= most {
			return most
		}
	}
	return d
}

func orUnknown(err error) error {
	if err == nil {
		return errors.New("no reason given")
	}
	return err
}

// verdict is what becomes of a delivery.
type verdict int

const (
	done   verdict = iota // acknowledged
	again                 // given back at once
	later                 // delivered again after the delay asked for
	retry                 // delivered again after a growing delay
	giveUp                // outcome recorded, then acknowledged
	leave                 // not answered
)

// judge decides what becomes of a delivery whose handler returned err. late: its
// deadline passed; stopping: why the worker's own context ended, or nil.
func judge(err error, m Message, late bool, stopping error) (verdict, Failure) {
	if err == nil {
		return done, Failure{}
	}
	var o *outcomeError
	if errors.As(err, &o) {
		f := Failure{Class: o.class, Err: o.err, delay: o.delay}
		if o.verdict == later && m.NumDelivered > MaxLater {
			f.Err = fmt.Errorf("put off %d times: %w", MaxLater, o.err)
			return giveUp, f
		}
		return o.verdict, f
	}
	if stopping != nil {
		return again, Failure{}
	}
	if late {
		return giveUp, Failure{Class: ClassTimeout, Err: fmt.Errorf("%w: %w", ErrDeadline, err)}
	}
	return retry, Failure{}
}
