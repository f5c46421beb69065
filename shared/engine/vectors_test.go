package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/engine"
	"github.com/factstream/factstream/shared/model/ollama/ollamatest"
)

// embed embeds texts in a step of its own.
func embed(t *testing.T, engines *engine.Engines, texts ...string) (vectors [][]float32) {
	t.Helper()
	require.NoError(t, engines.Do(t.Context(), step("e1"), func(ctx context.Context, m *engine.Engine) (err error) {
		vectors, err = m.Embed(ctx, texts, nil)
		return err
	}))
	require.Len(t, vectors, len(texts))
	return vectors
}

func TestATextIsEmbeddedOnceByAllProcesses(t *testing.T) {
	t.Parallel()
	b := setup(t, "ollama", engine.Options{})
	_, engines := b.open(t, "judge", engine.Options{})

	first := embed(t, b.engines, "a cell", "a car")
	again := embed(t, engines, "a car", "a tree", "a cell")
	require.Equal(t, first[0], again[2])
	require.Equal(t, first[1], again[0])
	var asked int
	for _, request := range b.server.Embeds() {
		asked += len(request.Input.([]any))
	}
	require.Equal(t, 3, asked)
}

func TestVectorsOfAnotherModelAreNotUsed(t *testing.T) {
	t.Parallel()
	b := setup(t, "ollama", engine.Options{})
	embed(t, b.engines, "a cell")
	b.server.Install(ollamatest.EmbedModel) // the same tag with another digest
	embed(t, b.engines, "a cell")
	require.Len(t, b.server.Embeds(), 2)
}

func TestAVectorThatCannotBeReadIsMadeAgain(t *testing.T) {
	t.Parallel()
	b := setup(t, "ollama", engine.Options{})
	want := embed(t, b.engines, "a cell")
	bucket, err := b.s.JS.KeyValue(t.Context(), topology.BucketVectors)
	require.NoError(t, err)
	for _, key := range keys(t, bucket) {
		_, err := bucket.Put(t.Context(), key, []byte("broken"))
		require.NoError(t, err)
	}
	require.Equal(t, want, embed(t, b.engines, "a cell"))
	require.Len(t, b.server.Embeds(), 2)
	require.Equal(t, want, embed(t, b.engines, "a cell"))
	require.Len(t, b.server.Embeds(), 2)
}

func TestManyTextsAreEmbeddedInTurns(t *testing.T) {
	t.Parallel()
	b := setup(t, "ollama", engine.Options{})
	texts := make([]string, 150)
	for i := range texts {
		texts[i] = string(rune('a'+i%26)) + string(rune('a'+i/26)) + " cell"
	}
	var said []int
	require.NoError(t, b.engines.Do(t.Context(), step("e1"), func(ctx context.Context, m *engine.Engine) error {
		vectors, err := m.Embed(ctx, texts, func(done, all int) {
			require.Equal(t, len(texts), all)
			said = append(said, done)
		})
		for i, v := range vectors {
			require.Len(t, v, ollamatest.Dimension, i)
		}
		return err
	}))
	require.Equal(t, []int{0, 64, 128}, said)
}
