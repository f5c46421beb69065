package ollama

import (
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"unicode"
)

// DefaultHost is where Ollama listens when nothing is configured.
const DefaultHost = "http://127.0.0.1:11434"

// ParseHost reads an address in the forms of OLLAMA_HOST: "" (the default), host, host:port, :port, [::1]:port, or a URL with http
// or https and perhaps a path. Without a scheme the port defaults to 11434, with one to its own. An address to listen on (0.0.0.0,
// ::) means this machine.
func ParseHost(host string) (*url.URL, error) {
	s := strings.TrimSpace(strings.Trim(strings.TrimSpace(host), `"'`))
	if s == "" {
		s = DefaultHost
	}
	scheme, rest, explicit := strings.Cut(s, "://")
	port := "11434"
	switch {
	case !explicit:
		scheme, rest = "http", s
	case strings.EqualFold(scheme, "http"):
		scheme, port = "http", "80"
	case strings.EqualFold(scheme, "https"):
		scheme, port = "https", "443"
	default:
		return nil, fmt.Errorf("ollama host %q: scheme %q, want http or https", host, scheme)
	}
	rest, path, _ := strings.Cut(rest, "/")
	if strings.ContainsAny(rest, "@?# ") || strings.ContainsAny(path, "?# ") {
		return nil, fmt.Errorf("ollama host %q: want host, host:port or a plain URL", host)
	}
	name := rest
	if h, p, err := net.SplitHostPort(rest); err == nil {
		name = h
		if p != "" {
			port = p
		}
	} else if strings.Count(rest, ":") == 1 { // not a bare IPv6 address
		return nil, fmt.Errorf("ollama host %q: %w", host, err)
	}
	name = strings.Trim(name, "[]")
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return nil, fmt.Errorf("ollama host %q: port %q, want 1 to 65535", host, port)
	}
	if ip := net.ParseIP(name); name == "" || ip != nil && ip.IsUnspecified() {
		name = "127.0.0.1"
	} else if ip == nil && strings.ContainsFunc(name, notInName) {
		return nil, fmt.Errorf("ollama host %q: bad name %q", host, name)
	}
	return &url.URL{Scheme: scheme, Host: net.JoinHostPort(name, port), Path: strings.Trim("/"+path, "/")}, nil
}

func notInName(r rune) bool {
	return r != '.' && r != '-' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}
