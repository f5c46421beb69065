package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePasswordOfEveryServerIsASecret(t *testing.T) {
	t.Parallel()
	const urls = "nats://u:hush-a@h:1, nats://u:hush-b@i:2,nats://u:hush-a@j:3,nats://k:4"
	cfg, err := Load(nil, env("NATS_URL", urls), "x")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{urls, "hush-a", "hush-b"}, cfg.Secrets())
}
