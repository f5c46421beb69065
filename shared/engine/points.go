package engine

import (
	"context"

	"github.com/factstream/factstream/shared/fault"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/model/replies"
)

// Points are where a test may end a process in the middle of a step, in the order in which the step passes them. The zero Points are
// nowhere.
type Points struct {
	Delivered fault.Point // RunStage only
	Chosen    fault.Point
	Embedded  fault.Point
	Replied   fault.Point
	Kept      fault.Point
	Made      fault.Point // RunStage only
	Appended  fault.Point // RunStage only
	GivenUp   fault.Point // RunStage only
}

// NewPoints registers the points of a service's steps. Call it once, in a package variable.
func NewPoints(service string) Points {
	return Points{
		Delivered: fault.New(service+".delivered", "what asks for the step is in hand; nothing was done about it yet"),
		Chosen:    fault.New(service+".chosen", "the choice of auto is recorded; no outcome of it is"),
		Replied:   fault.New(service+".replied", "the model has answered; its reply is not kept, and that of the engine without one never is; hit once for each call"),
		Kept:      fault.New(service+".kept", "a reply is kept; nothing was made of it; hit once for each reply, also one that was found"),
		Made:      fault.New(service+".made", "the outcome is made; it is not appended"),
		Appended:  fault.New(service+".appended", "the outcome is appended; the message is not acknowledged"),
		GivenUp:   fault.New(service+".given-up", "the failure is appended; the message is not acknowledged"),
	}
}

// Embedding adds the point of a service whose steps embed texts.
func (p Points) Embedding(service string) Points {
	p.Embedded = fault.New(service+".embedded", "texts were embedded; their vectors are not kept; hit once for each turn")
	return p
}

// keeper hits a point when a reply is kept.
type keeper struct {
	*replies.Store
	point fault.Point
}

func (k keeper) Do(ctx context.Context, key model.Key, req model.Request, call func(context.Context) (model.Reply, error)) (model.Record, error) {
	record, err := k.Store.Do(ctx, key, req, call)
	if err == nil {
		err = k.point.Hit(ctx)
	}
	return record, err
}
