package logfile

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func TestAFullFileIsPutAsideAndTheOldestGoes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "judge.log")
	f, err := Open(path, 10)
	require.NoError(t, err)
	for _, line := range []string{"111111\n", "222222\n", "333333\n", "444444\n", "5\n"} {
		n, err := f.Write([]byte(line))
		require.NoError(t, err)
		require.Len(t, line, n)
	}
	require.Equal(t, "444444\n5\n", read(t, path))
	require.Equal(t, "333333\n", read(t, path+".1"))
	require.Equal(t, "222222\n", read(t, path+".2"))
	require.NoFileExists(t, path+".3")
	require.NoError(t, f.Close())

	f, err = Open(path, 10)
	require.NoError(t, err)
	_, _ = f.Write([]byte("6\n"))
	require.NoError(t, f.Close())
	require.Equal(t, "6\n", read(t, path), "what was there counts")
}

func TestWritesThatFailAreDroppedAndCounted(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "logs")
	require.NoError(t, os.Mkdir(dir, 0o700))
	f, err := Open(filepath.Join(dir, "x.log"), 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	require.NoError(t, os.RemoveAll(dir))
	for range 2 {
		n, err := f.Write([]byte("lost\n"))
		require.NoError(t, err)
		require.Equal(t, 5, n)
	}
	require.NoError(t, os.Mkdir(dir, 0o700))
	_, _ = f.Write([]byte("kept\n"))
	require.NoError(t, f.Close())
	require.Equal(t, "(2 lines could not be written here)\nkept\n", read(t, filepath.Join(dir, "x.log")))

	_, err = Open(filepath.Join(dir, "missing", "x.log"), 0)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestLinesAreWholeWhateverThePieces(t *testing.T) {
	t.Parallel()
	text := "one\n\ntwo three\nfour"
	for size := 1; size <= len(text); size++ {
		var got []string
		lines := &Lines{Each: func(line []byte) { got = append(got, string(line)) }}
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			_, _ = lines.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		lines.Flush()
		lines.Flush()
		require.Equal(t, []string{"one\n", "\n", "two three\n", "four\n"}, got)
	}
}

func TestAnEndlessLineIsCut(t *testing.T) {
	t.Parallel()
	var total, longest int
	lines := &Lines{Each: func(line []byte) {
		total += len(line) - 1
		longest = max(longest, len(line))
	}}
	for range 100 {
		_, _ = lines.Write(bytes.Repeat([]byte("x"), 10_000))
	}
	lines.Flush()
	require.Equal(t, 1_000_000, total)
	require.LessOrEqual(t, longest, longestLine+1)
}

func TestThePersonSeesWarningsAndTheBeginningOfAPanic(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	terminal := NewTerminal(&out, zerolog.WarnLevel, false)
	terminal.Show("judge", []byte(`{"level":"info","service":"judge","message":"not shown"}`+"\n"))
	require.Empty(t, out.String())

	terminal.Show("judge", []byte(`{"level":"warn","service":"judge","time":"2026-03-01T12:00:00Z","thread":"t1","message":"slow"}`+"\n"))
	require.Regexp(t, `^judge      \| \d\d:\d\d:\d\d WRN slow thread=t1\n$`, out.String())

	out.Reset()
	for i := range 100 {
		terminal.Show("judge", fmt.Appendf(nil, "goroutine %d\n", i))
	}
	require.Equal(t, mostPlain+1, strings.Count(out.String(), "\n"))
	require.Contains(t, out.String(), "the rest is in its log file")

	out.Reset()
	terminal.Show("judge", []byte(`{"level":"error","message":"up again"}`))
	terminal.Show("judge", []byte(`"a string"`))
	require.Equal(t, 2, strings.Count(out.String(), "\n"))
}

func TestSeveralGoroutinesMayWrite(t *testing.T) {
	t.Parallel()
	f, err := Open(filepath.Join(t.TempDir(), "x.log"), 100)
	require.NoError(t, err)
	terminal := NewTerminal(&bytes.Buffer{}, zerolog.WarnLevel, false)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				_, _ = f.Write([]byte("a line\n"))
				terminal.Show("x", []byte("a line\n"))
			}
		})
	}
	wg.Wait()
	require.NoError(t, f.Close())
	require.LessOrEqual(t, len(read(t, f.path)), 100)
}

func FuzzTerminal(f *testing.F) {
	f.Add([]byte(`{"level":"warn","time":5,"message":{}}`))
	f.Add([]byte("panic: x"))
	f.Fuzz(func(t *testing.T, line []byte) {
		NewTerminal(&bytes.Buffer{}, zerolog.WarnLevel, true).Show("x", line)
	})
}
