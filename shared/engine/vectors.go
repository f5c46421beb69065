package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/text"
	"github.com/factstream/factstream/shared/vector"
)

// Space names the vectors that may be compared with one another: the same embedding model, digest, prefixes and dimension.
func Space(info model.Info) string {
	return text.ID("space", info.Engine, info.EmbedModel, info.EmbedDigest, info.Prefixes, strconv.Itoa(info.Dimension))
}

// Embed returns one vector per text, in order, of length 1 and in the space of m.Info. What a language model's server embedded once
// is looked up; said, when set, is told how many of the texts are done.
func (m *Engine) Embed(ctx context.Context, texts []string, said func(done, all int)) ([][]float32, error) {
	if said == nil {
		said = func(int, int) {}
	}
	if !m.shared { // cheaper to compute than to look up
		return m.model.Embed(ctx, texts, model.Document)
	}
	out, missing, err := m.engines.vectors.find(ctx, m.Info, texts)
	if err != nil {
		return nil, err
	}
	done := len(texts) - len(missing)
	for len(missing) > 0 {
		part := missing[:min(len(missing), embedAtOnce)]
		missing = missing[len(part):]
		said(done, len(texts))
		if err := m.embed(ctx, texts, part, out); err != nil {
			return nil, err
		}
		done += len(part)
	}
	return out, nil
}

// embedAtOnce is how many texts are embedded in one turn: what is done is kept, and others get theirs between.
const embedAtOnce = 64

// embed fills in out at the places of part.
func (m *Engine) embed(ctx context.Context, texts []string, part []int, out [][]float32) error {
	batch := make([]string, len(part))
	for i, at := range part {
		batch[i] = texts[at]
	}
	var vectors [][]float32
	err := m.turn(ctx, leaseEmbed, func(ctx context.Context) (err error) {
		vectors, err = m.model.Embed(ctx, batch, model.Document)
		return err
	})
	if err != nil {
		return fmt.Errorf("embed %d texts: %w", len(batch), err)
	}
	for i, at := range part {
		if len(vectors[i]) != m.Info.Dimension { // the model was exchanged under its name meanwhile
			return fmt.Errorf("%w: vectors of %d values, not %d", model.ErrEmbedding, len(vectors[i]), m.Info.Dimension)
		}
		out[at] = vectors[i]
	}
	if err := m.step.Points.Embedded.Hit(ctx); err != nil {
		return err
	}
	m.engines.vectors.keep(ctx, m.Info, batch, vectors)
	return nil
}

// vectors is the bucket of vectors by content. It is a cache: what cannot be read in it is embedded again.
type vectors struct {
	bucket jetstream.KeyValue
	log    zerolog.Logger
}

// lookups is how many vectors are looked up or kept at the same time.
const lookups = 16

// find looks texts up and returns the places of those that are not there.
func (v vectors) find(ctx context.Context, info model.Info, texts []string) (out [][]float32, missing []int, err error) {
	out = make([][]float32, len(texts))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(lookups)
	for i, words := range texts {
		group.Go(func() error {
			entry, err := v.bucket.Get(inner, vectorKey(info, words))
			switch {
			case errors.Is(err, jetstream.ErrKeyNotFound):
				return nil
			case err != nil:
				return fmt.Errorf("look up a vector: %w", err)
			}
			if found, err := vector.Decode(entry.Value()); err == nil && len(found) == info.Dimension {
				out[i] = found
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	for i := range out {
		if out[i] == nil {
			missing = append(missing, i)
		}
	}
	return out, missing, nil
}

// keep puts vectors, best effort.
func (v vectors) keep(ctx context.Context, info model.Info, texts []string, vectors [][]float32) {
	var group errgroup.Group
	group.SetLimit(lookups)
	for i, words := range texts {
		group.Go(func() error {
			_, err := v.bucket.Put(ctx, vectorKey(info, words), vector.Encode(vectors[i]))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		v.log.Warn().Err(err).Msg("vectors could not be kept; they will be computed again")
	}
}

// vectorKey is the key of a text's vector. It holds everything that the vector depends on.
func vectorKey(info model.Info, words string) string {
	return text.ID("vector", Space(info), words)
}
