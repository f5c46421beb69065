package up

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/text"
)

// readiness is the part of /readyz that a person is told at the start.
type readiness struct {
	Ready   bool     `json:"ready"`
	Reasons []string `json:"reasons"`
	Model   struct {
		Engine  string   `json:"engine"`
		Missing []string `json:"missing"`
		Hint    string   `json:"hint"`
	} `json:"model"`
	Provider struct {
		Mode string `json:"mode"` // empty when nobody knows
	} `json:"provider"`
}

// greet waits until every gateway, that of cfg and the others, says that it is ready and prints where everything is and what to try. It returns early
// when ctx ends. When it takes long the log says what it waits for.
func greet(ctx context.Context, out io.Writer, cfg config.Config, bus *bus, log zerolog.Logger, others []string) {
	began := time.Now()
	told := false
	for waiting := append([]string{cfg.HTTP}, others...); ctx.Err() == nil; {
		asked := cfg
		asked.HTTP = waiting[0]
		state, why := askReady(ctx, asked)
		if why == "" {
			if waiting = waiting[1:]; len(waiting) > 0 {
				continue
			}
			fmt.Fprint(out, greeting(cfg, bus, state, others...))
			return
		}
		if !told && time.Since(began) > readyWithin {
			told = true
			log.Warn().Str("waiting_for", why).Str("logs", LogDir(cfg.Data)).Msg("not ready yet")
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// askReady asks /readyz once. It returns why not when it is not ready.
func askReady(ctx context.Context, cfg config.Config) (state readiness, why string) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, baseURL(cfg.HTTP)+"/readyz", nil)
	if err != nil {
		return state, err.Error()
	}
	if cfg.Token.Set() {
		request.Header.Set("Authorization", "Bearer "+cfg.Token.Reveal())
	}
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return state, "the gateway does not answer yet"
	}
	defer response.Body.Close() //nolint:errcheck // only read
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<20))
	if err != nil {
		return state, "the gateway broke off its answer"
	}
	if err := json.Unmarshal(body, &state); err != nil {
		return state, fmt.Sprintf("the gateway answers %s", response.Status)
	}
	if response.StatusCode != http.StatusOK || !state.Ready {
		return state, fmt.Sprintf("the gateway answers %s: %.300s", response.Status, body)
	}
	return state, ""
}

// baseURL is where this machine reaches the gateway; an address of all interfaces is reached by loopback.
func baseURL(address string) string {
	host, port, _ := net.SplitHostPort(address)
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// columns is the width of a terminal that nobody has made wider; indent is where the second column begins.
const (
	columns = 80
	indent  = "            "
)

// greeting is what a person reads first; others are the addresses of further gateways.
func greeting(cfg config.Config, bus *bus, state readiness, others ...string) string {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-9s %s\n", name, text.Wrap(fmt.Sprintf(format, args...), len(indent), columns, indent))
	}
	base := baseURL(cfg.HTTP)
	fmt.Fprintf(&b, "\nFactstream is ready: %s\n", base)
	for _, other := range others {
		fmt.Fprintf(&b, "                and: %s\n", baseURL(other))
	}
	b.WriteString("\n")
	switch {
	case state.Provider.Mode == "":
		line("research", "not known: the settings cannot be read at this moment")
	case state.Provider.Mode == "live":
		line("research", "live: runs are bought from the provider (fast 250, balanced 350 credits)")
	case cfg.Replay.File != "":
		line("research", "replay: %s is played, nothing is bought", cfg.Replay.File)
	case cfg.Offline:
		line("research", "replay: recorded runs on solid-state batteries are played, whatever is asked; nothing is bought (OFFLINE is set)")
	default:
		line("research", "replay: recorded runs on solid-state batteries are played, whatever is asked; nothing is bought. For real ones save a key in the settings or set TABSTACK_API_KEY")
	}
	line("engine", "%s", engine(state))
	line("data", "%s", cfg.Data)
	for _, trouble := range state.Reasons {
		line("trouble", "%s", trouble)
	}
	line("bus", "%s", bus.address())
	if bus.servers != nil {
		line("", "three servers, each with all of it: any one process may be killed, and nothing is lost")
	}
	if bus.at != "" {
		line("", "other programs may read it: user and password are in %s", embedded.ReaderCredentialsFile(cfg.Data))
	}
	auth, export := "", ""
	if cfg.Token.Set() { // it is shown to nobody, and another terminal does not have it
		auth = ` -H "Authorization: Bearer $FACTSTREAM_TOKEN"`
		export = "  export FACTSTREAM_TOKEN=...   # in another terminal: the one that you set here\n"
	}
	fmt.Fprintf(&b, `
Try next:

%[4]s  T=$(curl -s%[2]s %[1]s/api/v1/threads -H 'Content-Type: application/json' \
    -d '{"question": "How close are solid-state batteries to mass production?", "auto": false}' | grep -o '"id":"[^"]*"' | head -n 1 | cut -d '"' -f 4)
  curl -s%[2]s -X POST %[1]s/api/v1/threads/$T/runs -H 'Content-Type: application/json' -d '{}'
  curl -s%[2]s %[1]s/api/v1/threads/$T/facts

Ctrl-C stops everything. Logs: %[3]s

`, base, auth, LogDir(cfg.Data), export)
	return b.String()
}

func engine(state readiness) string {
	switch name := state.Model.Engine; {
	case name == "":
		return "not known"
	case name == "extractive" && state.Model.Hint != "":
		return "extractive: rules, no language model; " + state.Model.Hint
	case name == "extractive":
		return "extractive: rules, no language model"
	case len(state.Model.Missing) > 0:
		return fmt.Sprintf("%s, but %s is missing; %s", name, strings.Join(state.Model.Missing, ", "), state.Model.Hint)
	default:
		return name
	}
}
