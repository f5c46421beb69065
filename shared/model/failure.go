package model

import (
	"context"
	"errors"
	"strings"
)

// Failures of a model. Each engine wraps them with what it saw; errors.Is finds them.
var (
	ErrAway          = errors.New("the model does not answer")
	ErrBusy          = errors.New("the model is busy")
	ErrMissing       = errors.New("the model is not installed")
	ErrMemory        = errors.New("there is not enough memory for the model")
	ErrCutShort      = errors.New("the model's answer broke off")
	ErrTimeout       = errors.New("the model took too long")
	ErrLength        = errors.New("the model's answer was cut at its length limit")
	ErrPromptTooLong = errors.New("the text is too long for the model's context")
	ErrRepeats       = errors.New("the model repeated itself until it was stopped")
	ErrEmpty         = errors.New("the model answered with nothing")
	ErrSchema        = errors.New("the model's answer does not have the form that was asked for")
	ErrRefused       = errors.New("the model server refused the request")
	ErrEmbedding     = errors.New("the embedding model's answer cannot be used")
)

// MissingError names models that are configured and not installed. errors.Is(err, ErrMissing) holds.
type MissingError struct {
	Models []string // tags exactly as configured, at least one
}

// Error names the models and the commands that bring them.
func (e *MissingError) Error() string {
	return strings.Join(e.Models, " and ") + " not installed; to get it: " + e.Hint()
}

// Hint is the command that brings what is missing.
func (e *MissingError) Hint() string {
	return "ollama pull " + strings.Join(e.Models, " && ollama pull ")
}

// Is makes every MissingError an ErrMissing.
func (e *MissingError) Is(target error) bool { return target == ErrMissing }

// Classes of failure, as stage.failed carries them.
const (
	ClassAway    = "model_away"
	ClassBusy    = "model_busy"
	ClassMissing = "model_missing"
	ClassMemory  = "model_memory"
	ClassBad     = "bad_output"
	ClassTooLong = "too_long"
	ClassTimeout = "timeout"
)

// Class names the kind of failure that err is, or "" when err is none of a model's (a cancelled context, a failing bus).
func Class(err error) string {
	switch {
	case errors.Is(err, ErrMissing):
		return ClassMissing
	case errors.Is(err, ErrBusy):
		return ClassBusy
	case errors.Is(err, ErrMemory):
		return ClassMemory
	case errors.Is(err, ErrTimeout):
		return ClassTimeout
	case errors.Is(err, ErrPromptTooLong):
		return ClassTooLong
	case errors.Is(err, ErrLength), errors.Is(err, ErrRepeats), errors.Is(err, ErrEmpty), errors.Is(err, ErrSchema), errors.Is(err, ErrRefused), errors.Is(err, ErrEmbedding):
		return ClassBad
	case errors.Is(err, ErrAway), errors.Is(err, ErrCutShort):
		return ClassAway
	}
	return ""
}

// Later reports whether err passes by itself or by a person's hand, so that the step waits for the model: away, busy, missing or
// out of memory. All other failures of a model end the step.
func Later(err error) bool {
	switch Class(err) {
	case ClassAway, ClassBusy, ClassMissing, ClassMemory:
		return true
	}
	return false
}

// worthAsking reports whether the same model may do better when told what was wrong.
func worthAsking(err error) bool {
	return errors.Is(err, ErrLength) || errors.Is(err, ErrRepeats) || errors.Is(err, ErrEmpty) || errors.Is(err, ErrSchema)
}

// ended returns the cause of ctx if it has ended, else nil.
func ended(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}
