package config

import (
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// variable is one row of the table: an environment variable, its flag, and the field it fills.
type variable struct {
	name     string
	group    string // heading in the help text
	fallback string // default, "" for none
	allowed  string // what it may be, completing "it must be ..."
	help     string
	secret   bool
	boolean  bool
	set      func(c *Config, value string) bool // false: not allowed
	get      func(c *Config) string             // "" when nothing is set
}

// flag is the variable's name in lower case with dashes, without the project's prefix.
func (v variable) flag() string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(v.name, "FACTSTREAM_")), "_", "-")
}

func (v variable) problem(from, value string) Problem {
	if v.secret {
		value = ""
	}
	return Problem{Name: from, Value: value, Allowed: "must be " + v.allowed}
}

const (
	groupPlace    = "Where it listens and keeps its data"
	groupThreads  = "New threads"
	groupBus      = "The bus (NATS JetStream)"
	groupProvider = "The paid research providers"
	groupModel    = "The model that distils and judges"
	groupTimes    = "Times"
	groupRest     = "The rest"
)

// The largest budget and duration are limits against typing errors, not of the machinery.
const (
	maxCredits  = 1_000_000_000
	maxDuration = 24 * time.Hour
)

var variables = []variable{
	{name: "FACTSTREAM_HTTP", group: groupPlace, fallback: "127.0.0.1:8080",
		allowed: "an address and port, such as 127.0.0.1:8080",
		help:    "address of the API and the page; another than loopback needs FACTSTREAM_TOKEN",
		set:     text(func(c *Config) *string { return &c.HTTP }, isHostPort),
		get:     func(c *Config) string { return c.HTTP }},
	{name: "FACTSTREAM_DATA", group: groupPlace, fallback: "data",
		allowed: "the path of a directory",
		help:    "directory of the notebook, its files and its logs",
		set: func(c *Config, value string) bool {
			c.Data = filepath.Clean(value)
			return isPath(value)
		},
		get: func(c *Config) string { return c.Data }},
	{name: "FACTSTREAM_TOKEN", group: groupPlace, secret: true,
		allowed: fmt.Sprintf("at least %d visible ASCII characters without spaces, such as `openssl rand -hex 16` makes", minToken),
		help:    fmt.Sprintf("access token that every request must carry; at least %d characters", minToken),
		set:     secret(func(c *Config) *Secret { return &c.Token }, isToken),
		get:     func(c *Config) string { return c.Token.Reveal() }},
	{name: "FACTSTREAM_KEY_FILE", group: groupPlace,
		allowed: "the path of a file",
		help:    "file of the key that saved API keys are encrypted with (secret.key in the data directory)",
		set:     text(func(c *Config) *string { return &c.KeyFile }, isPath),
		get:     func(c *Config) string { return c.KeyFile }},

	{name: "FACTSTREAM_BUDGET", group: groupThreads, fallback: "2000",
		allowed: fmt.Sprintf("a whole number of credits from 0 to %d", maxCredits),
		help:    "credits that a new thread may spend",
		set:     number(func(c *Config) *int { return &c.Budget }, 0, maxCredits),
		get:     func(c *Config) string { return strconv.Itoa(c.Budget) }},
	{name: "FACTSTREAM_DEPTH", group: groupThreads, fallback: "3",
		allowed: "a whole number from 0 to 100",
		help:    "how many follow-ups deep a new thread may go",
		set:     number(func(c *Config) *int { return &c.Depth }, 0, 100),
		get:     func(c *Config) string { return strconv.Itoa(c.Depth) }},
	{name: "FACTSTREAM_MODE", group: groupThreads, fallback: "fast",
		allowed: "fast or balanced",
		help:    "fast (250 credits a run) or balanced (350)",
		set:     text(func(c *Config) *string { return &c.Mode }, oneOf("fast", "balanced")),
		get:     func(c *Config) string { return c.Mode }},

	{name: "NATS_URL", group: groupBus, secret: true,
		allowed: "one or more comma-separated addresses such as nats://127.0.0.1:4222 (nats, tls, ws or wss)",
		help:    "server to use; unset: one is embedded. A user and password in it are taken from the variable only",
		set:     secret(func(c *Config) *Secret { return &c.NATS.URL }, isBusURL),
		get:     func(c *Config) string { return c.NATS.URL.Reveal() }},
	{name: "NATS_PORT", group: groupBus, fallback: "0",
		allowed: "a port from 0 to 65535",
		help:    "port of the embedded server; 0: 4222 if that is free, else any free one",
		set:     number(func(c *Config) *int { return &c.NATS.Port }, 0, 65535),
		get:     func(c *Config) string { return strconv.Itoa(c.NATS.Port) }},
	{name: "NATS_REPLICAS", group: groupBus, fallback: "1",
		allowed: "1, 3 or 5",
		help:    "copies of each stream; more than 1 needs a cluster behind NATS_URL",
		set: func(c *Config, value string) bool {
			c.NATS.Replicas, _ = strconv.Atoi(value)
			return oneOf("1", "3", "5")(value)
		},
		get: func(c *Config) string { return strconv.Itoa(c.NATS.Replicas) }},

	{name: "TABSTACK_API_KEY", group: groupProvider, secret: true,
		allowed: "visible ASCII characters without spaces",
		help:    "key of the Tabstack research API; counts while none is saved in the settings",
		set:     secret(func(c *Config) *Secret { return &c.Tabstack.APIKey }, isKey),
		get:     func(c *Config) string { return c.Tabstack.APIKey.Reveal() }},
	{name: "TABSTACK_BASE_URL", group: groupProvider, fallback: "https://api.tabstack.ai",
		allowed: "an https address without user, query or fragment (http only to this machine)",
		help:    "where the Tabstack API is",
		set:     text(func(c *Config) *string { return &c.Tabstack.BaseURL }, isBaseURL),
		get:     func(c *Config) string { return c.Tabstack.BaseURL }},
	{name: "TABSTACK_FETCH_TIMEOUT", group: groupProvider,
		allowed: "whole seconds from 1s to 1h, such as 30s",
		help:    "how long Tabstack may take to fetch one page; unset: not sent",
		set: func(c *Config, value string) bool {
			if _, err := strconv.Atoi(value); err == nil {
				value += "s" // the provider's own unit
			}
			return duration(func(c *Config) *time.Duration { return &c.Tabstack.FetchTimeout }, time.Second, time.Hour)(c, value) &&
				c.Tabstack.FetchTimeout%time.Second == 0
		},
		get: func(c *Config) string { return unlessZero(c.Tabstack.FetchTimeout) }},
	{name: "BRAVE_API_KEY", group: groupProvider, secret: true,
		allowed: "visible ASCII characters without spaces",
		help:    "(not used yet) key of the Brave answers API; counts while none is saved in the settings",
		set:     secret(func(c *Config) *Secret { return &c.Brave.APIKey }, isKey),
		get:     func(c *Config) string { return c.Brave.APIKey.Reveal() }},
	{name: "BRAVE_BASE_URL", group: groupProvider, fallback: "https://api.search.brave.com",
		allowed: "an https address without user, query or fragment (http only to this machine)",
		help:    "(not used yet) where the Brave API is",
		set:     text(func(c *Config) *string { return &c.Brave.BaseURL }, isBaseURL),
		get:     func(c *Config) string { return c.Brave.BaseURL }},
	{name: "OFFLINE", group: groupProvider, fallback: "false", boolean: true,
		allowed: "true or false (also 1, 0, yes, no)",
		help:    "call no provider outside this machine, whatever keys there are",
		set: func(c *Config, value string) bool {
			on, ok := boolean(value)
			c.Offline = on
			return ok
		},
		get: func(c *Config) string { return strconv.FormatBool(c.Offline) }},
	{name: "REPLAY_FILE", group: groupProvider,
		allowed: "the path of a file",
		help:    "recorded stream to play instead of the built-in ones; no live call is made while it is set",
		set:     text(func(c *Config) *string { return &c.Replay.File }, isPath),
		get:     func(c *Config) string { return c.Replay.File }},
	{name: "REPLAY_DELAY", group: groupProvider, fallback: "0s",
		allowed: "a duration from 0s to 1m, such as 20ms",
		help:    "pause between pieces of 512 bytes of a replay, to watch it",
		set:     duration(func(c *Config) *time.Duration { return &c.Replay.Delay }, 0, time.Minute),
		get:     func(c *Config) string { return c.Replay.Delay.String() }},

	{name: "MODEL_ENGINE", group: groupModel, fallback: "auto",
		allowed: "auto, ollama or extractive",
		help:    "ollama, extractive (no model), or auto: ollama if it answers and has the models",
		set:     text(func(c *Config) *string { return &c.Engine }, oneOf("auto", "ollama", "extractive")),
		get:     func(c *Config) string { return c.Engine }},
	{name: "OLLAMA_HOST", group: groupModel, fallback: "http://127.0.0.1:11434",
		allowed: "an address such as http://127.0.0.1:11434 or 127.0.0.1:11434",
		help:    "where Ollama is",
		set:     text(func(c *Config) *string { return &c.Ollama.Host }, isModelHost),
		get:     func(c *Config) string { return c.Ollama.Host }},
	{name: "OLLAMA_CHAT_MODEL", group: groupModel, fallback: "llama3.2:3b",
		allowed: "the tag of a model, such as llama3.2:3b",
		help:    "model that distils, judges and writes; used exactly as written",
		set:     text(func(c *Config) *string { return &c.Ollama.ChatModel }, isTag),
		get:     func(c *Config) string { return c.Ollama.ChatModel }},
	{name: "OLLAMA_EMBED_MODEL", group: groupModel, fallback: "nomic-embed-text",
		allowed: "the tag of a model, such as nomic-embed-text",
		help:    "model for embeddings; used exactly as written",
		set:     text(func(c *Config) *string { return &c.Ollama.EmbedModel }, isTag),
		get:     func(c *Config) string { return c.Ollama.EmbedModel }},
	{name: "OLLAMA_NUM_CTX", group: groupModel, fallback: "8192",
		allowed: "a whole number of tokens from 512 to 1048576",
		help:    "context length asked of the chat model",
		set:     number(func(c *Config) *int { return &c.Ollama.NumCtx }, 512, 1<<20),
		get:     func(c *Config) string { return strconv.Itoa(c.Ollama.NumCtx) }},

	{name: "RETRY_DELAYS", group: groupTimes, fallback: "30s,2m",
		allowed: "up to 10 comma-separated durations from 0s to 24h, such as 30s,2m, or none",
		help:    "waits before the second, third, ... attempt of a run; none: a single attempt",
		set: func(c *Config, value string) bool {
			delays, ok := durations(value)
			c.RetryDelays = delays
			return ok
		},
		get: func(c *Config) string { return formatDurations(c.RetryDelays) }},
	{name: "CALL_TIMEOUT", group: groupTimes, fallback: "15m",
		allowed: "a duration from 10ms to 24h, such as 15m",
		help:    "longest provider call; a needless cut buys the run again",
		set:     duration(func(c *Config) *time.Duration { return &c.CallTimeout }, 10*time.Millisecond, maxDuration),
		get:     func(c *Config) string { return c.CallTimeout.String() }},
	{name: "IDLE_TIMEOUT", group: groupTimes, fallback: "6m",
		allowed: "a duration from 10ms to 24h, such as 6m",
		help:    "longest silence within a provider call",
		set:     duration(func(c *Config) *time.Duration { return &c.IdleTimeout }, 10*time.Millisecond, maxDuration),
		get:     func(c *Config) string { return c.IdleTimeout.String() }},
	{name: "ACK_WAIT", group: groupTimes, fallback: "15s",
		allowed: "a duration from 500ms to 10m, such as 15s",
		help:    "how long a worker may be silent before its work is given to another",
		set:     duration(func(c *Config) *time.Duration { return &c.AckWait }, 500*time.Millisecond, 10*time.Minute),
		get:     func(c *Config) string { return c.AckWait.String() }},
	{name: "LEASE_TTL", group: groupTimes, fallback: "15s",
		allowed: "a duration from 500ms to 10m, such as 15s",
		help:    "how long a lease outlives its holder; at least 10s when NATS_REPLICAS is more than 1",
		set:     duration(func(c *Config) *time.Duration { return &c.LeaseTTL }, 500*time.Millisecond, 10*time.Minute),
		get:     func(c *Config) string { return c.LeaseTTL.String() }},

	{name: "ON_RESTART", group: groupRest, fallback: "continue",
		allowed: "pause or continue",
		help:    "what becomes of running threads when everything is started again on the built-in bus",
		set:     text(func(c *Config) *string { return &c.OnRestart }, oneOf("pause", "continue")),
		get:     func(c *Config) string { return c.OnRestart }},
	{name: "LOG_LEVEL", group: groupRest, fallback: "info",
		allowed: "trace, debug, info, warn or error",
		help:    "least level that is logged",
		set:     text(func(c *Config) *string { return &c.LogLevel }, oneOf("trace", "debug", "info", "warn", "error")),
		get:     func(c *Config) string { return c.LogLevel }},
}

func text(field func(*Config) *string, ok func(string) bool) func(*Config, string) bool {
	return func(c *Config, value string) bool {
		*field(c) = value
		return ok(value)
	}
}

func secret(field func(*Config) *Secret, ok func(string) bool) func(*Config, string) bool {
	return func(c *Config, value string) bool {
		*field(c) = Secret(value)
		return ok(value)
	}
}

func number(field func(*Config) *int, least, most int) func(*Config, string) bool {
	return func(c *Config, value string) bool {
		n, err := strconv.Atoi(value)
		*field(c) = n
		return err == nil && n >= least && n <= most
	}
}

func duration(field func(*Config) *time.Duration, least, most time.Duration) func(*Config, string) bool {
	return func(c *Config, value string) bool {
		d, err := time.ParseDuration(value)
		*field(c) = d
		return err == nil && d >= least && d <= most
	}
}

// durations reads a comma-separated list; the word none is the empty list, since an empty variable means the default.
func durations(value string) ([]time.Duration, bool) {
	if value == "none" {
		return nil, true
	}
	parts := strings.Split(value, ",")
	if len(parts) > 10 {
		return nil, false
	}
	out := make([]time.Duration, len(parts))
	for i, part := range parts {
		d, err := time.ParseDuration(strings.TrimSpace(part))
		if err != nil || d < 0 || d > maxDuration {
			return nil, false
		}
		out[i] = d
	}
	return out, true
}

func formatDurations(list []time.Duration) string {
	if len(list) == 0 {
		return "none"
	}
	parts := make([]string, len(list))
	for i, d := range list {
		parts[i] = d.String()
	}
	return strings.Join(parts, ",")
}

func unlessZero(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

func boolean(value string) (on, ok bool) {
	switch strings.ToLower(value) {
	case "1", "true", "yes", "on":
		return true, true
	case "0", "false", "no", "off":
		return false, true
	}
	return false, false
}

func oneOf(allowed ...string) func(string) bool {
	return func(value string) bool { return slices.Contains(allowed, value) }
}

func isPath(value string) bool { return value != "" && !strings.ContainsRune(value, 0) }

func isHostPort(value string) bool {
	host, port, err := net.SplitHostPort(value)
	if err != nil || strings.ContainsAny(host, " /@") {
		return false
	}
	n, err := strconv.Atoi(port)
	return err == nil && n >= 0 && n <= 65535
}

// isKey admits what may stand in an HTTP header as a credential.
func isKey(value string) bool {
	if len(value) > 4096 {
		return false
	}
	return value != "" && strings.IndexFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// minToken characters are too many to guess even where nothing slows the guessing down.
const minToken = 16

// isToken admits what may stand in an HTTP header and cannot be guessed for being short.
func isToken(value string) bool { return isKey(value) && len(value) >= minToken }

// isTag admits the characters of model tags; what exists is for Ollama to say.
func isTag(value string) bool {
	return len(value) <= 256 && strings.IndexFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) < 0
}

// isBaseURL admits where a key may be sent: encrypted, or not leaving this machine.
func isBaseURL(value string) bool {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return false
	}
	return u.Scheme == "https" || u.Scheme == "http" && Loopback(u.Hostname())
}

func isModelHost(value string) bool {
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	u, err := url.Parse(value)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil &&
		u.RawQuery == "" && u.Fragment == ""
}

func isBusURL(value string) bool {
	for part := range strings.SplitSeq(value, ",") {
		part = strings.TrimSpace(part)
		if !strings.Contains(part, "://") {
			part = "nats://" + part
		}
		u, err := url.Parse(part)
		if err != nil || u.Hostname() == "" || !slices.Contains([]string{"nats", "tls", "ws", "wss"}, u.Scheme) {
			return false
		}
	}
	return true
}
