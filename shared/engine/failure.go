package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/factstream/factstream/jetstream/batch"
	"github.com/factstream/factstream/jetstream/worker"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
)

// Failure reports whether err ends the stage for good, with the class that stage.failed carries and the reason for people. It is
// false for nil, for what passes by itself (the model is away, busy, missing or out of memory) and for what is not the model's
// failure; such errors are returned from Do's function as they are.
func Failure(err error) (class, reason string, ended bool) {
	class = model.Class(err)
	if errors.Is(err, batch.ErrTooLarge) {
		class = classTooLarge
	}
	if class == "" || model.Later(err) || errors.Is(err, ErrUnwanted) {
		return "", "", false
	}
	return class, Sentence(err.Error()), true
}

// outcome turns the end of a step into what the worker does next.
func (e *Engines) outcome(ctx context.Context, step Step, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil: // the worker stops: the message comes again
		return err
	case model.Later(err):
		return worker.Later(event.ClassModelAway, e.options.Backoff(step.Delivered), err)
	case model.Class(err) != "":
		return worker.GiveUp(model.Class(err), err)
	case errors.Is(err, batch.ErrTooLarge):
		return worker.GiveUp(classTooLarge, err)
	}
	return err
}

// classTooLarge means that an outcome does not fit into a message of the bus.
const classTooLarge = "too_large"

// Reason is what stage.failed says to people when the worker gave a step up: what happened, what was kept ("The report is kept.")
// and what to do.
func Reason(f worker.Failure, kept string) string {
	said := Sentence(f.Err.Error())
	switch f.Class {
	case event.ClassModelAway:
		return fmt.Sprintf("The model did not do its part: %s %s The stage is done by itself when the model answers again; it can also be retried, or the thread be given another engine.", said, kept)
	case model.ClassTimeout:
		return fmt.Sprintf("It took too long: %s %s Retry the stage, or choose a smaller model.", said, kept)
	case worker.ClassCrashLoop:
		return fmt.Sprintf("It was tried %d times and never ended. %s Look at the log, then retry the stage.", worker.MaxDelivered, kept)
	case worker.ClassMalformed:
		return fmt.Sprintf("The message that asks for it cannot be read: %s It is kept among the dead letters. %s", said, kept)
	}
	return fmt.Sprintf("%s %s Retry the stage, or choose another model.", said, kept)
}

// Sentence makes an error's text one sentence that ends with a stop.
func Sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}
