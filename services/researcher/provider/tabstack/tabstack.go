// Package tabstack asks the Tabstack research API.
package tabstack

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/factstream/factstream/services/researcher/provider"
)

// DefaultBaseURL is the live service.
const DefaultBaseURL = "https://api.tabstack.ai"

// MaxQuery is the most code points that a query may have.
const MaxQuery = 10_000

// ErrOffline says that the configuration forbids calls beyond this machine and the base URL leads there.
var ErrOffline = errors.New("tabstack: offline, and the base URL is not on this machine")

// ErrBaseURL says that the base URL cannot be used.
var ErrBaseURL = errors.New("tabstack: base URL is not usable")

// Config says whom to ask and how long to wait. Zero values mean the defaults that are named.
type Config struct {
	// BaseURL of the service, without the path of the call (TABSTACK_BASE_URL); DefaultBaseURL.
	BaseURL string
	// Offline refuses every base URL, and every connection, that leads beyond this machine (OFFLINE).
	Offline bool
	// ConnectTimeout is for name, connection and TLS together; 30 s.
	ConnectTimeout time.Duration
	// FirstByteTimeout is from the connection to the first byte of the answer; 60 s.
	FirstByteTimeout time.Duration
	// IdleTimeout is the longest time without any byte after that, comments included (IDLE_TIMEOUT); 6 min. Generous,
	// since a needless cut buys the run again.
	IdleTimeout time.Duration
	// CallTimeout is for the whole call (CALL_TIMEOUT); 15 min.
	CallTimeout time.Duration
	// Client makes the call; its redirect policy is replaced. nil means a client without kept connections. With a
	// client of your own, Offline checks the base URL only.
	Client *http.Client
	// Now stamps events and reads Retry-After dates; time.Now.
	Now func() time.Time
}

// Client is the live provider. It is safe for concurrent use.
type Client struct {
	endpoint string
	config   Config
	http     *http.Client
}

var _ provider.Provider = (*Client)(nil)

// lingering is how long the stream is still read after complete, so that an error sent right behind it is noticed and
// a well-behaved server can end the connection. The result does not depend on it.
const lingering = 250 * time.Millisecond

// errorBody bounds what is read of an answer that is no stream.
const errorBody = 1 << 20

// New checks the configuration. It returns ErrBaseURL for a base URL that is not an http or https URL of a host, or has
// user, query or fragment, and ErrOffline as Config says.
func New(config Config) (*Client, error) {
	setDefault(&config.BaseURL, DefaultBaseURL)
	setDefault(&config.ConnectTimeout, 30*time.Second)
	setDefault(&config.FirstByteTimeout, 60*time.Second)
	setDefault(&config.IdleTimeout, 6*time.Minute)
	setDefault(&config.CallTimeout, 15*time.Minute)
	if config.Now == nil {
		config.Now = time.Now
	}
	base, err := url.Parse(config.BaseURL)
	if err != nil {
		return nil, ErrBaseURL // the parser's error repeats the text, which may hold a password
	}
	if (base.Scheme != "http" && base.Scheme != "https") || base.Hostname() == "" || base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("%w: want http(s)://host[:port][/path] without user, query and fragment", ErrBaseURL)
	}
	if config.Offline && !onThisMachine(base.Hostname()) {
		return nil, fmt.Errorf("%w: %s", ErrOffline, base.Host)
	}
	client := config.Client
	if client == nil {
		client = &http.Client{Transport: transport(config)}
	}
	own := *client
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	own.Timeout = 0 // it would end a healthy stream
	return &Client{endpoint: base.JoinPath("v1", "research").String(), config: config, http: &own}, nil
}

// Name implements provider.Provider.
func (c *Client) Name() string { return Name }

// Research implements provider.Provider. A request that the service would refuse is refused before it is sent.
func (c *Client) Research(ctx context.Context, req provider.Request, sink provider.Sink) (provider.Result, error) {
	body, failure := encode(req)
	if failure != nil {
		return provider.Result{}, failure
	}
	watch := newWatch(ctx, c.config)
	defer watch.stop()

	resp, failure := c.post(watch, req.Key, body)
	if failure != nil {
		return provider.Result{}, failure
	}
	defer func() { _ = resp.Body.Close() }() // closes the connection; the answer is read or given up
	if !isStream(resp) {
		return provider.Result{}, c.notAStream(watch, resp, req.Key, sink)
	}
	return provider.Read(watch.ctx, watchedBody{resp.Body, watch}, provider.Reading{
		Provider: Name, Protocol: new(Events), Sink: sink, Now: c.config.Now, Secret: req.Key,
		Billing: billing, Ended: watch.ended,
	})
}

// Decode implements provider.Provider.
func (c *Client) Decode(ctx context.Context, r io.Reader, sink provider.Sink) (provider.Result, error) {
	return provider.Read(ctx, r, provider.Reading{Provider: Name, Protocol: new(Events), Sink: sink, Now: c.config.Now, Billing: billing})
}

const billing = "The provider may still bill this call."

// encode makes the body of the call. Unset options are absent, not null.
func encode(req provider.Request) ([]byte, *provider.Error) {
	refuse := func(detail string) ([]byte, *provider.Error) {
		return nil, &provider.Error{Provider: Name, Code: provider.CodeBadRequest, Detail: detail + " Nothing was sent, so nothing is billed."}
	}
	if req.Key == "" {
		return nil, &provider.Error{Provider: Name, Code: provider.CodeAuth, Park: provider.ParkNoKey,
			Detail: "There is no Tabstack key; save one in the settings. Nothing was sent, so nothing is billed."}
	}
	if strings.ContainsFunc(req.Key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, &provider.Error{Provider: Name, Code: provider.CodeAuth, Park: provider.ParkNoKey,
			Detail: "The Tabstack key holds characters that a key cannot have; save it again. Nothing was sent, so nothing is billed."}
	}
	switch n := utf8.RuneCountInString(req.Query); {
	case !utf8.ValidString(req.Query):
		return refuse("The question is not valid UTF-8.")
	case strings.TrimSpace(req.Query) == "":
		return refuse("The question is empty.")
	case n > MaxQuery:
		return refuse(fmt.Sprintf("The question has %d characters; the provider takes at most %d.", n, MaxQuery))
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(struct {
		Query        string `json:"query"`
		Mode         string `json:"mode,omitempty"`
		Nocache      bool   `json:"nocache,omitempty"`
		FetchTimeout int64  `json:"fetch_timeout,omitempty"`
	}{req.Query, req.Mode, req.Nocache, seconds(req.FetchTimeout)})
	if err != nil {
		return refuse("The request cannot be encoded.")
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// seconds rounds up to whole seconds; 0 for none.
func seconds(d time.Duration) int64 { return int64((max(d, 0) + time.Second - 1) / time.Second) }

// post makes the one call and waits for the head of its answer.
func (c *Client) post(watch *watch, key string, body []byte) (*http.Response, *provider.Error) {
	r, err := http.NewRequestWithContext(watch.traced(), http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, &provider.Error{Provider: Name, Code: provider.CodeBadRequest, Detail: "The call cannot be made with this base URL. Nothing was sent, so nothing is billed."}
	}
	r.GetBody = nil // the body is never sent a second time, on another connection either
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	resp, err := c.http.Do(r)
	if err == nil {
		return resp, nil
	}
	cost := "Nothing was sent, so nothing is billed."
	if watch.connected() {
		cost = billing
	}
	if watch.ctx.Err() != nil {
		e := provider.Interrupted(watch.ctx)
		e.Provider = Name
		e.Detail += ", before an answer began. " + cost
		return nil, e
	}
	return nil, &provider.Error{Provider: Name, Code: provider.CodeTransport, Retryable: !errors.Is(err, ErrOffline), Err: cause(err),
		Detail: transportText(err, watch.connected()) + " " + cost}
}

// isStream says whether the answer is an event stream: by its content type, since a body of JSON fed to the decoder
// would look like an empty stream.
func isStream(resp *http.Response) bool {
	if resp.StatusCode < 200 || resp.StatusCode > 299 || resp.StatusCode == http.StatusNoContent {
		return false
	}
	kind := resp.Header.Get("Content-Type")
	if kind == "" {
		return resp.ContentLength != 0
	}
	media, _, err := mime.ParseMediaType(kind)
	return err == nil && media == "text/event-stream"
}

// notAStream reads an answer that is no stream and says what it means. It is kept as well: it may have been paid.
func (c *Client) notAStream(watch *watch, resp *http.Response, key string, sink provider.Sink) *provider.Error {
	body, _ := io.ReadAll(io.LimitReader(watchedBody{resp.Body, watch}, errorBody)) // what came of it is enough
	if len(body) > 0 && resp.StatusCode < 300 {
		if kept := sink.Bytes(body); kept != nil {
			return &provider.Error{Provider: Name, Code: provider.CodeNotKept, Status: resp.StatusCode, Err: kept,
				Detail: "What the provider sent could not be kept: " + kept.Error() + ". " + billing}
		}
	}
	if cause := context.Cause(watch.ctx); cause != nil && !errors.Is(cause, provider.CodeStall) {
		e := provider.Interrupted(watch.ctx)
		e.Provider, e.Status = Name, resp.StatusCode
		e.Detail += ". " + billing
		return e
	}
	return provider.FromStatus(Name, resp.StatusCode, resp.Header, body, c.config.Now(), key)
}

// transport keeps no connection: calls are minutes apart, and one that ends must close its socket. The connect timeout
// stands here as well because net/http goes on dialling after a request has ended.
func transport(config Config) *http.Transport {
	dialer := &net.Dialer{Timeout: config.ConnectTimeout, KeepAlive: 15 * time.Second}
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, TLSHandshakeTimeout: config.ConnectTimeout,
		DisableKeepAlives: true, ForceAttemptHTTP2: true,
	}
	if config.Offline {
		t.Proxy = nil
		dialer.Control = func(_, address string, _ syscall.RawConn) error {
			if to, err := netip.ParseAddrPort(address); err != nil || !to.Addr().IsLoopback() {
				return fmt.Errorf("%w: %s", ErrOffline, address)
			}
			return nil
		}
	}
	return t
}

func onThisMachine(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// cause takes the error out of the one that the HTTP client wraps around it, whose text repeats the URL.
func cause(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// transportText says what went wrong before an answer began.
func transportText(err error, connected bool) string {
	var dns *net.DNSError
	var unknown *tls.CertificateVerificationError
	switch {
	case errors.As(err, &dns):
		return fmt.Sprintf("The provider's address %q was not found.", dns.Name)
	case errors.As(err, &unknown):
		return "The provider's certificate is not valid for its address."
	case errors.Is(err, syscall.ECONNREFUSED):
		return "The provider's address refuses connections."
	case errors.Is(err, ErrOffline):
		return "The base URL leads beyond this machine, which offline mode forbids."
	case connected:
		return "The connection broke before an answer began."
	}
	return fmt.Sprintf("No connection to the provider could be made: %s.", provider.Excerpt("", []byte(cause(err).Error())))
}

func setDefault[T comparable](value *T, fallback T) {
	var zero T
	if *value == zero {
		*value = fallback
	}
}
