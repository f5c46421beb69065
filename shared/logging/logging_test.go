package logging

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLinesAreJSONWithTheServiceAndOnlyOfTheLevel(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := New("judge", "warn", &out, NewRedactor())
	log.Info().Msg("not shown")
	log.Warn().Str("thread", "t1").Msg("shown")

	var line map[string]string
	require.NoError(t, json.Unmarshal(out.Bytes(), &line), out.String())
	require.Equal(t, "judge", line["service"])
	require.Equal(t, "shown", line["message"])
	require.Equal(t, "t1", line["thread"])
	require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}`, line["time"])
	require.Equal(t, 1, strings.Count(out.String(), "\n"))
}

func TestAnUnknownLevelIsInfo(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"", "loud"} {
		require.Equal(t, zerolog.InfoLevel, New("x", level, &bytes.Buffer{}, NewRedactor()).GetLevel())
	}
}

func TestNoSecretAppearsInAnyField(t *testing.T) {
	t.Parallel()
	const key = `sk-"odd\key/with+signs`
	var out bytes.Buffer
	redactor := NewRedactor(key, "sk-", "sk-\"odd", "")
	log := New("researcher", "trace", &out, redactor)
	log.Error().
		Str("header", "Bearer "+key).
		Err(errors.New("dial with "+key)).
		Str("url", "https://h/?key=sk-%22odd%5Ckey%2Fwith%2Bsigns").
		RawJSON("raw", []byte(`{"k":"sk-\"odd\\key/with+signs"}`)).
		Msg(key + key)
	require.NotContains(t, out.String(), "odd")
	require.NotContains(t, out.String(), "with+signs")
	require.True(t, json.Valid(out.Bytes()), out.String())

	out.Reset()
	log.Info().Msg("later-key")
	require.Contains(t, out.String(), "later-key")
	out.Reset()
	redactor.Add("later-key")
	log.Info().Msg("later-key")
	require.NotContains(t, out.String(), "later-key")
}

func TestVeryShortSecretsDoNotBlotOutTheLog(t *testing.T) {
	t.Parallel()
	require.Equal(t, "a message", string(NewRedactor("a", "mes").Redact([]byte("a message"))))
}

func TestAWriterReportsTheLengthItWasGiven(t *testing.T) {
	t.Parallel()
	n, err := NewRedactor("secret").Writer(&bytes.Buffer{}).Write([]byte("a secret"))
	require.NoError(t, err)
	require.Equal(t, 8, n)

	_, err = NewRedactor().Writer(failing{}).Write([]byte("x"))
	require.Error(t, err)
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestARedactorServesSeveralGoroutines(t *testing.T) {
	t.Parallel()
	redactor := NewRedactor()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			redactor.Add("secret")
			assert.Equal(t, blot, string(redactor.Redact([]byte("secret"))))
		})
	}
	wg.Wait()
}
