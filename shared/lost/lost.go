// Package lost finds steps that nobody will do any more: their message was acknowledged and yet the notebook has no
// outcome of them. The sweeper asks for them again; who watches the system counts their threads.
package lost

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

// Step is a lost step of a thread.
type Step struct {
	Thread string
	notebook.Step
}

// Find gives the steps that are lost now. The floors are read before the tail catches up: a message is acknowledged
// after its outcome was appended, so the outcome of whatever lies below a floor is then in the tail.
func Find(ctx context.Context, js jetstream.JetStream, tail *notebook.Tail, now time.Time) ([]Step, error) {
	floors, err := Floors(ctx, js)
	if err != nil {
		return nil, err
	}
	if _, err := tail.CatchUp(ctx); err != nil {
		return nil, fmt.Errorf("look for lost steps: %w", err)
	}
	var steps []Step
	tail.ViewAll(func(n *notebook.Notebook) { steps = Steps(n, floors, now) })
	return steps, nil
}

// Floors gives, for each durable of the notebook, the sequence up to which all its messages are acknowledged.
func Floors(ctx context.Context, js jetstream.JetStream) (map[string]uint64, error) {
	floors := map[string]uint64{}
	for _, d := range topology.Durables() {
		consumer, err := js.Consumer(ctx, topology.Notebook, d.Name)
		if err != nil {
			return nil, fmt.Errorf("look up the consumer %s: %w", d.Name, err)
		}
		floors[d.Name] = consumer.CachedInfo().AckFloor.Stream // just asked for
	}
	return floors, nil
}

// Steps gives the steps whose trigger lies at or below the floor of the durable that reads it and that may be done
// now. It is pure.
func Steps(n *notebook.Notebook, floors map[string]uint64, now time.Time) []Step {
	var steps []Step
	for _, t := range n.Threads() {
		for _, s := range notebook.Next(t) {
			durable := durableOf(t, s)
			if durable != "" && s.Trigger <= floors[durable] && !s.NotBefore.After(now) {
				steps = append(steps, Step{Thread: t.ID, Step: s})
			}
		}
	}
	return steps
}

// stages are what the workers do, by their durables.
var stages = map[string]string{
	topology.RunsTabstack: event.StageRun, topology.Autopilot: event.StageAutopilot, topology.Distil: event.StageDistill,
	topology.Judge: event.StageJudge, topology.Brief: event.StageClose,
}

// StageOf names the stage that the worker of a durable does; empty for a consumer that is no worker's.
func StageOf(durable string) string { return stages[durable] }

// durableOf names the consumer that brings the trigger of a step; empty for a step that none does.
func durableOf(t *notebook.Thread, s notebook.Step) string {
	if s.Stage == event.StageRun && t.Runs[s.Entity].Requested.Provider != event.Tabstack {
		return ""
	}
	for durable, stage := range stages {
		if stage == s.Stage {
			return durable
		}
	}
	return ""
}
