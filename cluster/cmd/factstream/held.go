package main

import (
	"bytes"
	"context"
	"io"

	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/services/gateway/projection"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/backup"
	"github.com/factstream/factstream/shared/settings"
)

// heldSource is a notebook.db as a source of a restore. It has every event; of what is outside the events it has the texts that it shows.
type heldSource struct{ db *projection.Held }

var _ backup.Source = heldSource{}

func (h heldSource) LastSequence() uint64 { return h.db.Position() }

func (h heldSource) Messages(ctx context.Context, do func(projector.Message) error) error {
	return h.db.Messages(ctx, do)
}

func (h heldSource) Artifacts(ctx context.Context, do func(artifact.Ref, io.Reader) error) error {
	return h.db.Texts(ctx, func(ref artifact.Ref, content []byte) error { return do(ref, bytes.NewReader(content)) })
}

func (h heldSource) Names(func(artifact.Naming) error) error   { return nil }
func (h heldSource) Trail(func(projector.Message) error) error { return nil }
func (h heldSource) Settings() (settings.Patch, error)         { return settings.Patch{}, nil }
