// Package config reads what a process is told at its start: environment variables, each of which a flag may override.
//
// One table (variables.go) names every variable with its default, its meaning and what it may be; Load, Help and
// Environ are made from it, so that they cannot disagree.
package config

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// LeastFree is how many bytes must be free where the notebook is kept before anything is bought: more than the largest answer that is taken, so that what
// was paid for can be kept.
const LeastFree = 256 << 20

// Config is everything a Factstream process is told from outside. Values are within the ranges of the table.
type Config struct {
	Service string // the name that Load was given

	HTTP    string // host:port of the gateway; another host than loopback only with Token
	Data    string // directory of the notebook, its files and its logs
	Token   Secret // access token of the HTTP API
	KeyFile string // file of the key that saved API keys are encrypted with

	Budget int    // credits of a new thread, >= 0
	Depth  int    // depth limit of a new thread, >= 0
	Mode   string // "fast" or "balanced"

	NATS     NATS
	Tabstack Tabstack
	Brave    Brave
	Offline  bool // no provider outside this machine is called, whatever keys there are
	Replay   Replay
	Ollama   Ollama
	Engine   string // "auto", "ollama" or "extractive"

	RetryDelays []time.Duration // wait before the second, third, ... attempt; their number + 1 is the number of attempts
	CallTimeout time.Duration   // longest provider call
	IdleTimeout time.Duration   // longest silence within a provider call
	AckWait     time.Duration   // how long a worker may be silent before its message is given to another
	LeaseTTL    time.Duration   // how long a lease outlives its holder
	OnRestart   string          // "continue" or "pause": what becomes of running threads when everything is started again

	LogLevel string // "trace", "debug", "info", "warn" or "error"
}

// NATS says where the bus is.
type NATS struct {
	URL      Secret // with user and password in it, hence secret; empty: a server is embedded
	Port     int    // of the embedded server; 0: 4222 if that is free, else any free one
	Replicas int    // copies of each stream: 1, 3 or 5
}

// Tabstack says how the Tabstack research API is called.
type Tabstack struct {
	APIKey       Secret
	BaseURL      string        // scheme and host
	FetchTimeout time.Duration // whole seconds, 0: left out of the request
}

// Brave says how the Brave answers API is called.
type Brave struct {
	APIKey  Secret
	BaseURL string // scheme and host
}

// Replay says what is played when no live provider is asked.
type Replay struct {
	File  string        // a recorded stream instead of the built-in ones; also forbids live calls
	Delay time.Duration // between pieces of 512 bytes
}

// Ollama says where the local models are. The tags are used exactly as written.
type Ollama struct {
	Host       string
	ChatModel  string
	EmbedModel string
	NumCtx     int // tokens
}

// ErrHelp is what Load returns when help was asked for; the text is that of Help.
var ErrHelp = flag.ErrHelp

// Error lists everything that is wrong with a configuration, so that one start shows all of it.
type Error struct {
	Problems []Problem
}

// Problem is one thing that is wrong: the variable (or flag), the value that was given, and what is allowed.
// Value is empty for a secret.
type Problem struct {
	Name, Value, Allowed string
}

// Error gives one line per problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// String is the problem in one line.
func (p Problem) String() string {
	if p.Value == "" {
		return p.Name + ": " + p.Allowed
	}
	return fmt.Sprintf("%s=%q: %s", p.Name, p.Value, p.Allowed)
}

// Load reads the configuration of the process called name: the defaults, then getenv (an empty value counts as unset),
// then the flags in args (without the program's name). It returns ErrHelp when args ask for help, else a *Error with
// every problem at once. Secrets come from the environment only, since every user of a machine can read the arguments
// of its processes.
func Load(args []string, getenv func(string) string, name string) (Config, error) {
	cfg := Config{Service: name}
	given, err := parseFlags(args, name)
	if errors.Is(err, ErrHelp) {
		return cfg, err
	}
	var problems []Problem
	var bad *Problem
	if errors.As(err, &bad) {
		problems = append(problems, *bad)
	}
	for _, v := range variables {
		value, from := v.fallback, v.name
		if env := strings.TrimSpace(getenv(v.name)); env != "" {
			value = env
		}
		if arg, ok := given[v.name]; ok {
			value, from = strings.TrimSpace(arg), "--"+v.flag()
		}
		if value == "" {
			continue
		}
		if !v.set(&cfg, value) {
			problems = append(problems, v.problem(from, value))
		}
	}
	if cfg.KeyFile == "" {
		cfg.KeyFile = filepath.Join(cfg.Data, "secret.key")
	}
	if len(problems) == 0 {
		problems = contradictions(cfg)
	}
	if u, err := url.Parse(given["NATS_URL"]); err == nil && u.User != nil {
		problems = append(problems, Problem{Name: "--nats-url",
			Allowed: "must not hold a user or password, since the arguments of a process are readable by all; use the variable NATS_URL"})
	}
	if len(problems) > 0 {
		return cfg, &Error{Problems: problems}
	}
	return cfg, nil
}

// LoadOrExit loads the configuration of this process for a main function. Help goes to standard output with exit code 0,
// problems go to standard error with exit code 2.
func LoadOrExit(name string) Config {
	cfg, err := Load(os.Args[1:], os.Getenv, name)
	switch {
	case errors.Is(err, ErrHelp):
		fmt.Print(Help(name))
		os.Exit(0)
	case err != nil:
		fmt.Fprintf(os.Stderr, "%s: the configuration is not usable\n%v\n", name, err)
		os.Exit(2)
	}
	return cfg
}

// Check says whether value would be allowed for the variable called name; the error is a *Error naming both.
// It panics when there is no such variable.
func Check(name, value string) error {
	for _, v := range variables {
		if v.name == name {
			var scratch Config
			if value == "" || !v.set(&scratch, value) {
				return &Error{Problems: []Problem{v.problem(name, value)}}
			}
			return nil
		}
	}
	panic("config: no variable " + name)
}

// Variables returns the name of every environment variable that Load reads.
func Variables() []string {
	names := make([]string, len(variables))
	for i, v := range variables {
		names[i] = v.name
	}
	return names
}

// Environ returns the configuration as NAME=value pairs that Load reads back to the same Config, for the environment of
// a child process. Unlike everything else here it holds the secrets in clear text.
func (c Config) Environ() []string {
	var env []string
	for _, v := range variables {
		if value := v.get(&c); value != "" {
			env = append(env, v.name+"="+value)
		}
	}
	return env
}

// Secrets returns every secret that is set, for the redaction of logs.
func (c Config) Secrets() []string {
	var out []string
	for _, s := range []Secret{c.Token, c.NATS.URL, c.Tabstack.APIKey, c.Brave.APIKey} {
		if s.Set() {
			out = append(out, s.Reveal())
		}
	}
	for address := range strings.SplitSeq(c.NATS.URL.Reveal(), ",") {
		u, err := url.Parse(strings.TrimSpace(address))
		if err != nil || u.User == nil {
			continue
		}
		if password, ok := u.User.Password(); ok && password != "" && !slices.Contains(out, password) {
			out = append(out, password)
		}
	}
	return out
}

// Live says whether a provider at baseURL may be called at all: any when not Offline, else only one on this machine (a
// stand-in); none while a recorded stream was asked for by name, since nobody who names one wants to be billed.
func (c Config) Live(baseURL string) bool {
	if c.Replay.File != "" {
		return false
	}
	if !c.Offline {
		return true
	}
	u, err := url.Parse(baseURL)
	return err == nil && Loopback(u.Hostname())
}

// Loopback says whether host (a name or address without port) can only mean this machine.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}

// contradictions finds values that are allowed one by one but not together.
func contradictions(c Config) []Problem {
	var out []Problem
	if host, _, err := net.SplitHostPort(c.HTTP); err == nil && !Loopback(host) && !c.Token.Set() {
		out = append(out, Problem{"FACTSTREAM_HTTP", c.HTTP,
			"an address that others can reach needs FACTSTREAM_TOKEN; without a token only loopback, such as 127.0.0.1:8080"})
	}
	if c.NATS.Replicas > 1 && c.LeaseTTL < 10*time.Second {
		out = append(out, Problem{"LEASE_TTL", c.LeaseTTL.String(),
			"at least 10s when NATS_REPLICAS is more than 1, since an election may take that long"})
	}
	return out
}

// parseFlags returns the values given by flags, by variable name. Its error is ErrHelp or a *Problem.
func parseFlags(args []string, name string) (map[string]string, error) {
	given := map[string]string{}
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Usage = func() {}
	for _, v := range variables {
		if !v.secret || v.name == "NATS_URL" {
			set.Var(&flagValue{variable: v, given: given}, v.flag(), v.help)
		}
	}
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return given, ErrHelp
		}
		return given, &Problem{Name: "flags", Allowed: err.Error() + "; --help lists what there is"}
	}
	if set.NArg() > 0 {
		return given, &Problem{Name: "arguments", Value: strings.Join(set.Args(), " "), Allowed: "none are taken besides flags; --help lists those"}
	}
	return given, nil
}

// Error lets parseFlags return a Problem as an error.
func (p *Problem) Error() string { return p.String() }

// flagValue notes the text of a flag; whether it is allowed is decided once, with the environment's values.
type flagValue struct {
	variable variable
	given    map[string]string
}

func (f *flagValue) String() string { return "" }

func (f *flagValue) Set(text string) error {
	f.given[f.variable.name] = text
	return nil
}

// IsBoolFlag lets --offline stand for --offline=true.
func (f *flagValue) IsBoolFlag() bool { return f.variable.boolean }
