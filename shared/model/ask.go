package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Call is everything around a task: who is asked, on whose behalf, and where replies are kept.
type Call struct {
	Model   Model
	Replies Keeper // nil keeps nothing: the task answered is the one given
	Thread  string // the thread that the step works for
	Trigger string // id of the event that the step works on; a retry or rebuild has another one
	Part    string // tells apart several calls of one step for one trigger, e.g. the number of the chunk; may be empty
	Pair    string // of a judged pair: both fingerprints. A verdict is about two texts, whatever brought them together, so it stands in for Trigger

	// Turn, when set, is called around each call of the model (not around looking a reply up): it waits for the model's lease and
	// runs fn under it, with the context that the lease gives.
	Turn     func(ctx context.Context, priority Priority, fn func(context.Context) error) error
	Priority Priority
}

// Key names a reply: the same question, put to the same model, for the same reason.
type Key struct {
	Thread string
	Digest string // Info.ChatDigest
	Cause  string // id of the triggering event, or both fingerprints of a pair
	Step   string // task, part and try
}

// Record is a reply with the request that it answers.
type Record struct {
	Task   json.RawMessage `json:"task"` // the task as JSON: the numbered choices
	System string          `json:"system"`
	Prompt string          `json:"prompt"`
	Reply  Reply           `json:"reply"`
	At     time.Time       `json:"at"`

	Found bool `json:"-"` // it was looked up, not asked for now
}

// Keeper keeps replies before they are used: Do returns the record kept under key, or else calls, keeps and returns the new one. A
// failed call keeps nothing. model/replies is the one of the notebook.
type Keeper interface {
	Do(ctx context.Context, key Key, req Request, call func(context.Context) (Reply, error)) (Record, error)
}

// Outcome says how a result came about.
type Outcome struct {
	Engine   string
	Model    string
	Digest   string
	Drops    Drops         // what was dropped or mended, by cause; never nil
	Tries    int           // 1, or 2 when the first reply was refused
	Kept     bool          // the reply had been kept: the model was not asked again
	Duration time.Duration // of the model's call that answered
}

// ask puts a task to the model and decodes its reply. A reply that cannot be used (cut, empty, of another form) is asked for once
// more, with the reason; a second one ends the step. It returns the task that was answered: that of a kept reply may be older than
// the one given.
func ask[T Task, R any](ctx context.Context, call Call, task T) (T, R, Outcome, error) {
	var reply R
	info, err := call.Model.Info(ctx)
	if err != nil {
		return task, reply, Outcome{Drops: Drops{}}, fmt.Errorf("%s: %w", task.Step(), err)
	}
	out := Outcome{Engine: info.Engine, Model: info.ChatModel, Digest: info.ChatDigest, Drops: Drops{}}
	if direct, ok := call.Model.(Direct); ok && call.Replies == nil {
		return askDirectly[T, R](ctx, call, direct, task, out)
	}
	req := task.Request()
	req.Priority = call.Priority
	for out.Tries = 1; ; out.Tries++ {
		var record Record
		record, err = call.keep(ctx, info, req, out.Tries)
		answered := task
		if err == nil {
			answered, reply, err = decode[T, R](task, record, req.Schema)
		}
		if err == nil {
			out.Engine, out.Model, out.Digest = record.Reply.Engine, record.Reply.Model, record.Reply.Digest
			out.Kept, out.Duration = record.Found, record.Reply.Duration
			return answered, reply, out, nil
		}
		if out.Tries == 2 || !worthAsking(err) {
			return task, reply, out, fmt.Errorf("%s: %w", task.Step(), err)
		}
		req = again(task.Request(), call.Priority, err)
	}
}

// askDirectly is ask for an engine in this process, whose replies are not kept. It has no language model that would do better when told
// what was wrong, so it is asked once.
func askDirectly[T Task, R any](ctx context.Context, call Call, model Direct, task T, out Outcome) (T, R, Outcome, error) {
	var answer any
	var marks Reply
	var reply R
	out.Tries = 1
	err := call.turn(ctx, func(ctx context.Context) (err error) {
		answer, marks, err = model.Answer(ctx, task)
		return err
	})
	if err == nil {
		var ok bool
		if reply, ok = answer.(R); !ok {
			err = fmt.Errorf("%w: %T, not %T", ErrSchema, answer, reply)
		}
	}
	if err != nil {
		return task, reply, out, fmt.Errorf("%s: %w", task.Step(), err)
	}
	out.Engine, out.Model, out.Digest, out.Duration = marks.Engine, marks.Model, marks.Digest, marks.Duration
	return task, reply, out, nil
}

// with is the outcome of two calls that did one task together.
func (o Outcome) with(other Outcome) Outcome {
	o.Drops.Merge(other.Drops)
	o.Tries = max(o.Tries, other.Tries)
	o.Kept = o.Kept && other.Kept
	o.Duration += other.Duration
	return o
}

// part is the same call for a part of its task.
func (c Call) part(name string) Call {
	c.Part += "." + name
	return c
}

func halves[E any](list []E) (a, b []E) { return list[:len(list)/2], list[len(list)/2:] }

// tooMuch reports whether a smaller task may succeed: the prompt did not fit into the model's context, or the answer did not.
func tooMuch(err error) bool { return errors.Is(err, ErrPromptTooLong) || errors.Is(err, ErrLength) }

// again is the request of the second try: it says what was wrong, since a model at temperature 0 answers equal prompts equally, and
// gives a reply that was cut twice the room.
func again(req Request, priority Priority, err error) Request {
	req.Priority = priority
	req.Prompt += fmt.Sprintf("\nAn earlier answer was refused: %s. Answer with one complete JSON object of the schema, and keep it short.\n", material(err.Error(), 300))
	if errors.Is(err, ErrLength) {
		req.MaxTokens *= 2
	}
	return req
}

// keep looks the reply up or asks for it.
func (c Call) keep(ctx context.Context, info Info, req Request, try int) (Record, error) {
	generate := func(ctx context.Context) (reply Reply, err error) {
		err = c.turn(ctx, func(ctx context.Context) error {
			reply, err = c.Model.Generate(ctx, req)
			return err
		})
		return reply, err
	}
	if c.Replies == nil {
		reply, err := generate(ctx)
		return Record{Reply: reply}, err
	}
	return c.Replies.Do(ctx, c.key(info, req.Task.Step(), try), req, generate)
}

// turn calls the model when it is the caller's turn.
func (c Call) turn(ctx context.Context, fn func(context.Context) error) error {
	if c.Turn == nil {
		return fn(ctx)
	}
	return c.Turn(ctx, c.Priority, fn)
}

// key names the reply of a try. A second try always belongs to its trigger, also for pairs: else two bad replies about a pair would
// stand for as long as replies are kept, whoever retries the step.
func (c Call) key(info Info, step string, try int) Key {
	key := Key{Thread: c.Thread, Digest: info.ChatDigest, Cause: c.Trigger, Step: step + "/" + c.Part}
	if c.Pair != "" {
		key.Cause = c.Pair
	}
	if try > 1 {
		key.Step += "/again"
		if c.Pair != "" {
			key.Step += "/" + c.Trigger
		}
	}
	return key
}

// NewRecord is the record of a reply that has just come.
func NewRecord(req Request, reply Reply, at time.Time) (Record, error) {
	task, err := json.Marshal(req.Task)
	if err != nil {
		return Record{}, fmt.Errorf("keep the task %s: %w", req.Task.Step(), err)
	}
	return Record{Task: task, System: req.System, Prompt: req.Prompt, Reply: reply, At: at}, nil
}

// decode reads a reply, and the task that it answers: the one that was kept with it, or else the one given.
func decode[T Task, R any](given T, record Record, schema json.RawMessage) (task T, reply R, err error) {
	if record.Task == nil {
		task = given
	} else if err := json.Unmarshal(record.Task, &task); err != nil {
		return task, reply, fmt.Errorf("read the kept task: %w", err)
	}
	object, err := Extract(record.Reply.Text, schema)
	if err != nil {
		return task, reply, err
	}
	if err := json.Unmarshal(object, &reply); err != nil {
		return task, reply, fmt.Errorf("%w: %w", ErrSchema, err)
	}
	return task, reply, nil
}
