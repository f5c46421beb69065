package text

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/idna"
	"golang.org/x/net/publicsuffix"
)

// What CanonicalURL refuses.
var (
	ErrScheme = errors.New("not an http or https URL")
	ErrHost   = errors.New("URL without a usable host")
	ErrURL    = errors.New("malformed URL")
)

// CanonicalURL returns the URL under which a page is known, so that spellings of one page are one source: scheme
// and host in lower case, http as https, international names in punycode, without user and password, leading "www.",
// port 80 or 443, fragment, tracking parameters and slashes at the end of the path; "." and ".." resolved, escapes of
// unreserved characters decoded, others in capitals, what must be escaped escaped. The case of the path, all other
// parameters and their order are kept. It is idempotent.
//
// Errors: ErrScheme for anything but an absolute http or https URL (javascript:, data:, file:, relative), ErrHost for a
// missing or impossible host or port, ErrURL for control characters.
func CanonicalURL(raw string) (string, error) {
	raw = strings.TrimSpace(strings.ToValidUTF8(raw, "\uFFFD"))
	if strings.ContainsFunc(raw, unicode.IsControl) {
		return "", fmt.Errorf("%w: control character in %q", ErrURL, Truncate(raw, 200))
	}
	scheme, rest, found := strings.Cut(raw, "://")
	if scheme = strings.ToLower(scheme); !found || scheme != "http" && scheme != "https" {
		return "", fmt.Errorf("%w: %q", ErrScheme, Truncate(raw, 200))
	}
	rest, _, _ = strings.Cut(rest, "#")
	rest, query, _ := strings.Cut(rest, "?")
	// Browsers take a backslash for a slash; so no host hides behind one.
	authority, pathPart := rest, ""
	if n := strings.IndexAny(rest, `/\`); n >= 0 {
		authority, pathPart = rest[:n], rest[n:]
	}
	host, err := canonicalHost(authority)
	if err != nil {
		return "", fmt.Errorf("%w: %q", err, Truncate(raw, 200))
	}
	out := "https://" + host + canonicalPath(pathPart)
	if q := canonicalQuery(query); q != "" {
		out += "?" + q
	}
	return out, nil
}

// Site returns the registrable domain of a URL ("bbc.co.uk"), below which one owner speaks; the host itself where there
// is none (an IP address, localhost, a public suffix), and "" for what CanonicalURL refuses.
func Site(raw string) string {
	canonical, err := CanonicalURL(raw)
	if err != nil {
		return ""
	}
	host := strings.TrimPrefix(canonical, "https://")
	if n := strings.IndexAny(host, "/?"); n >= 0 {
		host = host[:n]
	}
	if strings.HasPrefix(host, "[") {
		end := strings.IndexByte(host, ']')
		return host[1:end]
	}
	host, _, _ = strings.Cut(host, ":")
	if _, err := netip.ParseAddr(host); err == nil {
		return host
	}
	site, err := publicsuffix.EffectiveTLDPlusOne(host)
	if err != nil {
		return host
	}
	return site
}

// hostNames maps names as browsers do, but accepts underscores, which exist.
var hostNames = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.StrictDomainName(false))

func canonicalHost(authority string) (string, error) {
	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	name, port := authority, ""
	if n := strings.LastIndexByte(authority, ':'); n > strings.LastIndexByte(authority, ']') {
		name, port = authority[:n], authority[n+1:]
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return "", fmt.Errorf("%w (port)", ErrHost)
		}
		port = ":" + strconv.FormatUint(n, 10)
		// Either, since http and https are one: else http://host:443 would become another page when read again.
		if n == 80 || n == 443 {
			port = ""
		}
	}
	if strings.HasPrefix(name, "[") {
		addr, err := netip.ParseAddr(strings.TrimSuffix(name[1:], "]"))
		if err != nil || !strings.HasSuffix(name, "]") || !addr.Is6() || addr.Zone() != "" {
			return "", fmt.Errorf("%w (address)", ErrHost)
		}
		return "[" + addr.String() + "]" + port, nil
	}
	name = decodeEscapes(name)
	// Mapping may yield what is mapped once more (a soft hyphen, a full-width dot): until nothing changes.
	for range 4 {
		mapped, err := hostNames.ToASCII(name)
		if err != nil {
			return "", fmt.Errorf("%w (name)", ErrHost)
		}
		mapped = strings.TrimRight(strings.ToLower(mapped), ".")
		if mapped == name {
			break
		}
		name = mapped
	}
	for strings.HasPrefix(name, "www.") && strings.Contains(name[4:], ".") {
		name = name[4:]
	}
	if !validHost(name) {
		return "", fmt.Errorf("%w (name)", ErrHost)
	}
	return name + port, nil
}

func validHost(name string) bool {
	if name == "" || len(name) > 253 {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > 63 {
			return false
		}
		for i := range len(label) {
			if !isASCIIWord(label[i]) && label[i] != '-' && label[i] != '_' {
				return false
			}
		}
	}
	return true
}

// decodeEscapes decodes all escapes of a host name, as browsers do before they map it.
func decodeEscapes(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if b, ok := escaped(s, i); ok {
			out = append(out, b)
			i += 2
			continue
		}
		out = append(out, s[i])
	}
	return string(out)
}

func canonicalPath(p string) string {
	p = escape(strings.ReplaceAll(p, `\`, "/"), pathChars)
	if strings.Contains(p, "/.") {
		// Empty segments stay: to some servers they mean something, and path.Clean would drop them.
		p = resolveDots(p)
	}
	return strings.TrimRight(p, "/")
}

// resolveDots removes "." and ".." segments as RFC 3986 section 5.2.4 does.
func resolveDots(p string) string {
	var kept []string
	for segment := range strings.SplitSeq(strings.TrimPrefix(p, "/"), "/") {
		switch segment {
		case ".":
		case "..":
			kept = kept[:max(0, len(kept)-1)]
		default:
			kept = append(kept, segment)
		}
	}
	return "/" + strings.Join(kept, "/")
}

func canonicalQuery(query string) string {
	var kept []string
	for param := range strings.SplitSeq(query, "&") {
		param = escape(param, queryChars)
		name, _, _ := strings.Cut(param, "=")
		if param != "" && !isTracking(strings.ToLower(name)) {
			kept = append(kept, param)
		}
	}
	return strings.Join(kept, "&")
}

// Characters that may stand unescaped, beside letters and digits.
const (
	unreservedMarks = "-._~"
	pathChars       = unreservedMarks + "!$&'()*+,;=:@/"
	queryChars      = pathChars + "?"
)

const hexDigits = "0123456789ABCDEF"

// escape decodes the escapes of unreserved characters, writes the others in capitals, and escapes what is not allowed,
// a percent sign that begins no escape among it.
func escape(s, allowed string) string {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if b, ok := escaped(s, i); ok {
			i += 2
			if isASCIIWord(b) || strings.IndexByte(unreservedMarks, b) >= 0 {
				out = append(out, b)
				continue
			}
			c = b
		} else if isASCIIWord(c) || strings.IndexByte(allowed, c) >= 0 {
			out = append(out, c)
			continue
		}
		out = append(out, '%', hexDigits[c>>4], hexDigits[c&15])
	}
	return string(out)
}

// escaped reads the escape at i.
func escaped(s string, i int) (byte, bool) {
	if s[i] != '%' || i+2 >= len(s) {
		return 0, false
	}
	n, err := strconv.ParseUint(s[i+1:i+3], 16, 8)
	return byte(n), err == nil
}

// isTracking accepts parameters that name a campaign, a click or a reader, never a page.
func isTracking(name string) bool {
	for _, prefix := range []string{"utm_", "mtm_", "pk_", "piwik_", "matomo_", "hsa_", "__hs"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return trackingParameters[name]
}

var trackingParameters = WordSet(`gclid gclsrc dclid gbraid wbraid gad_source gad_campaignid srsltid _ga _gl fbclid
	fb_action_ids fb_action_types fb_source msclkid mc_cid mc_eid igshid igsh twclid ttclid yclid ysclid ymclid li_fat_id
	epik rdt_cid _hsenc _hsmi hsctatracking mkt_tok vero_id vero_conv oly_anon_id oly_enc_id rb_clickid s_cid wickedid
	_openstat ml_subscriber ml_subscriber_hash guccounter guce_referrer guce_referrer_sig __twitter_impression
	_branch_match_id _bta_c _bta_tid trk_contact trk_msg trk_module trk_sid`)
