package tiny_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/model/ollama/realtest/tiny"
)

// That the files are good models is shown by the server that loads them (make test-ollama).
func TestModelsAreSmallAndTheSameForTheSameSeed(t *testing.T) {
	t.Parallel()
	for _, name := range tiny.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := tiny.Model(name, 1)
			require.NoError(t, err)
			require.Less(t, len(file), 1<<20)
			require.True(t, bytes.HasPrefix(file, []byte("GGUF\x03\x00\x00\x00")))
			require.Less(t, binary.LittleEndian.Uint64(file[8:]), uint64(50), "tensors")
			require.Zero(t, len(file)%32, "aligned to its end")
			again, err := tiny.Model(name, 1)
			require.NoError(t, err)
			require.Equal(t, file, again)
			other, err := tiny.Model(name, 2)
			require.NoError(t, err)
			require.NotEqual(t, file, other)
			require.Len(t, other, len(file), "only the weights differ")
		})
	}
	_, err := tiny.Model("tiny-nothing", 1)
	require.ErrorContains(t, err, "tiny-nothing")
}
