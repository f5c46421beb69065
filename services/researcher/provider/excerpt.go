package provider

import (
	"bytes"
	"encoding/json"
	"mime"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var htmlTitle = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)

// Excerpt returns what an answer that is no stream says about itself, short enough for one line: the error text of a
// JSON body in any of the usual shapes, the title of a page of HTML, else the start of the text. "" when it says nothing.
func Excerpt(contentType string, body []byte) string {
	if text := jsonText(body); text != "" {
		return cut(text)
	}
	media, _, err := mime.ParseMediaType(contentType)
	looksLikeHTML := strings.HasPrefix(strings.ToLower(strings.TrimSpace(string(body[:min(len(body), 64)]))), "<")
	if (err == nil && media == "text/html") || looksLikeHTML {
		if m := htmlTitle.FindSubmatch(body); m != nil {
			return cut(string(m[1]))
		}
		return ""
	}
	return cut(string(body[:min(len(body), 4*excerptLength)]))
}

// jsonText finds the text for people in {"error": "text"}, {"error": {"message"|"detail": "text"}}, {"message": "text"},
// {"detail": "text"} and {"errors": [...]} of any of these.
func jsonText(body []byte) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(body, &fields) != nil {
		return ""
	}
	for _, key := range []string{"error", "errors", "message", "detail", "title"} {
		raw, ok := fields[key]
		if !ok {
			continue
		}
		var text string
		if json.Unmarshal(raw, &text) == nil && text != "" {
			return text
		}
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) == nil && len(list) > 0 {
			raw = list[0]
		}
		if text = jsonText(raw); text != "" {
			return text
		}
		if json.Unmarshal(raw, &text) == nil && text != "" {
			return text
		}
	}
	return ""
}

// cut makes one line of at most excerptLength bytes out of text: white space folded, control characters dropped, never
// inside a character.
func cut(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if unicode.IsControl(r) || r == utf8.RuneError {
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= excerptLength {
		return text
	}
	end := excerptLength - len("…")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// redactBytes removes a secret that a text may repeat; before the text is cut, so that no part of it stays.
func redactBytes(text []byte, secret string) []byte {
	if secret == "" {
		return text
	}
	return bytes.ReplaceAll(text, []byte(secret), []byte("[key]"))
}

// sentence ends text with a full stop unless it ends like a sentence already.
func sentence(text string) string {
	if strings.HasSuffix(text, ".") || strings.HasSuffix(text, "!") || strings.HasSuffix(text, "?") || strings.HasSuffix(text, "…") {
		return text
	}
	return text + "."
}
