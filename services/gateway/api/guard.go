package api

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/nats-io/nats.go"

	"github.com/factstream/factstream/services/gateway/web"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/telemetry"
)

// maxBody is the largest body of a request in bytes: a question of 10,000 code points, escaped, many times over.
const maxBody = 1 << 20

// guard stands before everything: who asks, from which page, and whether the body is text at all.
func (s *Server) guard(next http.Handler) http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers(w.Header(), strings.HasPrefix(r.URL.Path, base+"/"))
		connection := http.NewResponseController(w)
		if r.ContentLength != 0 { // also of those that are refused: the server reads on to the end of a body before it answers
			_ = connection.SetReadDeadline(time.Now().Add(s.options.BodyTimeout)) // a connection without deadlines is not of this server
		}
		switch p := s.check(r, crossOrigin); {
		case p == nil:
			if !reading(r) {
				_ = connection.SetReadDeadline(time.Time{}) // as above
			}
			next.ServeHTTP(w, traced(r))
		case p.Status == http.StatusUnauthorized && web.IsPage(r):
			web.Login(w, r)
		default:
			p.write(w)
		}
	})
}

// traced is a request within the trace that its traceparent names, else in one of its own: the events that it leads to carry it. What others send as
// tracestate is not taken over, since it would lie in every event.
func traced(r *http.Request) *http.Request {
	if reading(r) {
		return r
	}
	return r.WithContext(telemetry.Extract(r.Context(), nats.Header{"traceparent": r.Header.Values("traceparent")}))
}

// headers keep the answers of this server from being framed, sniffed, cached or read by other sites. The page loads nothing from elsewhere.
func headers(h http.Header, api bool) {
	h.Set("Content-Security-Policy", web.ContentSecurityPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	if api {
		h.Set("Cache-Control", "no-store")
	}
}

func (s *Server) check(r *http.Request, crossOrigin *http.CrossOriginProtection) *Problem {
	if !s.hostAllowed(r.Host) {
		return problem(http.StatusForbidden, "host-not-allowed",
			"The request was sent to the name %q. Without an access token this server answers to its own address only, so that no page of another site can reach it under a name of its own. Nothing was changed; send it to localhost or to the address of FACTSTREAM_HTTP, or set an access token (FACTSTREAM_TOKEN) to use other names.", r.Host)
	}
	if err := crossOrigin.Check(r); err != nil || r.Header.Get("Origin") == "null" && !reading(r) {
		return problem(http.StatusForbidden, "cross-origin", "Writes are taken from this server's own page and from programs, not from pages of other sites. Nothing was changed; use this server's own page, or a program.")
	}
	if !s.authorised(r) {
		return problem(http.StatusUnauthorized, "token-required", "This server has an access token, and the request does not carry it. Nothing was changed; send it as Authorization: Bearer TOKEN, or open the page and enter it.")
	}
	return checkBody(r)
}

func reading(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// hostAllowed keeps a name that an attacker points at this machine (DNS rebinding) from being a way in. With a token the name does not matter: a
// browser has no cookie for the attacker's name.
func (s *Server) hostAllowed(host string) bool {
	if s.Config.Token.Set() {
		return true
	}
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	own, _, err := net.SplitHostPort(s.Config.HTTP)
	return config.Loopback(name) || err == nil && own != "" && strings.EqualFold(name, own)
}

// authorised accepts the token as a bearer, or the page's cookie. What says no more than that the server is there needs none.
func (s *Server) authorised(r *http.Request) bool {
	if !s.Config.Token.Set() || open(r.URL.Path) {
		return true
	}
	return s.hasToken(r)
}

func (s *Server) hasToken(r *http.Request) bool {
	token := s.Config.Token.Reveal()
	scheme, sent, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") && same(strings.TrimSpace(sent), token) {
		return true
	}
	cookie, err := r.Cookie(web.Cookie)
	return err == nil && same(cookie.Value, web.CookieValue(token))
}

// open lists what is answered without the token: that the process lives, and what the login page is made of.
func open(path string) bool {
	return path == "/healthz" || path == "/login" || strings.HasPrefix(path, "/assets/")
}

// same compares in a time that tells nothing about where two secrets differ.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// checkBody reads the body of a write: JSON decoders put U+FFFD in place of broken text without a word, and what was sent would be lost.
func checkBody(r *http.Request) *Problem {
	if reading(r) || r.Body == nil {
		return nil
	}
	content, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return problem(http.StatusRequestEntityTooLarge, "too-large", "The body is larger than %d bytes. Nothing was changed; send a smaller one.", maxBody)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return problem(http.StatusRequestTimeout, "body-timeout", "The body took too long to arrive. Nothing was changed; send it again.")
	case err != nil:
		return problem(http.StatusBadRequest, "malformed-request", "The body could not be read to its end. Nothing was changed; send it again.")
	case !utf8.Valid(content):
		return problem(http.StatusUnprocessableEntity, "invalid-utf8", "The body is not valid UTF-8 (byte %d). Nothing was changed; send the text as UTF-8.", firstInvalid(content))
	case !isForm(r) && loneSurrogate(content) >= 0:
		return problem(http.StatusUnprocessableEntity, "invalid-utf8", "The body escapes half of a UTF-16 pair (byte %d), which is no character. Nothing was changed; send both halves, or the character itself.", loneSurrogate(content))
	}
	r.Body = io.NopCloser(bytes.NewReader(content))
	r.ContentLength = int64(len(content))
	return nil
}

func firstInvalid(content []byte) int {
	for i := 0; i < len(content); {
		r, n := utf8.DecodeRune(content[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(content)
}

func isForm(r *http.Request) bool {
	return strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded")
}

// loneSurrogate finds the first escape in JSON text (\ud800 to \udfff) that is half of a UTF-16 pair without the other half; -1 when there is none.
func loneSurrogate(content []byte) int {
	for i := 0; i < len(content); i++ {
		if content[i] != '\\' {
			continue
		}
		half := escaped(content[i:])
		switch {
		case half < 0: // some other escape; its second character may be a backslash
			i++
		case !utf16.IsSurrogate(half):
			i += 5
		case utf16.DecodeRune(half, escaped(content[min(i+6, len(content)):])) == utf8.RuneError:
			return i
		default:
			i += 11
		}
	}
	return -1
}

// escaped is the code unit of the escape \uXXXX that content begins with; -1 when it begins otherwise.
func escaped(content []byte) rune {
	if len(content) < 6 || content[0] != '\\' || content[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(content[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}
