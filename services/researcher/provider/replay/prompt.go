package replay

import (
	"bytes"
	"encoding/json"

	"github.com/factstream/factstream/shared/sse"
)

// withPrompt returns the stream with the query as metadata.prompt of its complete event, and every other byte as it
// was recorded. The bytes are changed, not the result, so that the kept stream decodes to the same result again. A
// stream without a whole complete event that has metadata is returned as it is.
func withPrompt(stream []byte, query string) []byte {
	data := completeData(stream)
	at, end, found := promptValue(data)
	if !found {
		return stream
	}
	// Data may lie over several data lines. A string never does, so the line of the prompt is looked for in the stream.
	from := bytes.LastIndexByte(data[:at], '\n') + 1
	to := len(data)
	if i := bytes.IndexByte(data[end:], '\n'); i >= 0 {
		to = end + i
	}
	line := bytes.LastIndex(stream, data[from:to])
	if line < 0 {
		return stream // the recording is no valid UTF-8 there
	}
	value := quoted(query)
	if at == end { // metadata without a prompt: a whole member is put in front
		value = append([]byte(`"prompt":`), value...)
		if next := bytes.TrimLeft(data[at:], " \t\r\n"); len(next) > 0 && next[0] != '}' {
			value = append(value, ',')
		}
	}
	return bytes.Join([][]byte{stream[:line+at-from], value, stream[line+end-from:]}, nil)
}

// completeData returns the data of the complete event that counts, or nil.
func completeData(stream []byte) []byte {
	var d sse.Decoder
	events, err := d.Feed(stream)
	if err != nil {
		return nil
	}
	last, err := d.Finish()
	if err != nil {
		return nil
	}
	for _, e := range append(events, last...) {
		if e.Name == "complete" {
			return e.Data
		}
	}
	return nil
}

// promptValue finds the value of metadata.prompt in a JSON object: data[at:end]. When metadata has no prompt, at and end
// are both the place behind its opening brace. found is false when there is no metadata object, or no valid JSON.
func promptValue(data []byte) (at, end int, found bool) {
	if !json.Valid(data) {
		return 0, 0, false
	}
	start, stop, found := member(data, 0, "metadata")
	if !found || data[start] != '{' {
		return 0, 0, false
	}
	at, end, found = member(data[start:stop], start, "prompt")
	if !found {
		return start + 1, start + 1, true
	}
	return at, end, true
}

// member finds the value of a member of the JSON object; offset is added to both places.
func member(object []byte, offset int, name string) (at, end int, found bool) {
	d := json.NewDecoder(bytes.NewReader(object))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return 0, 0, false
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return 0, 0, false
		}
		var value json.RawMessage
		if d.Decode(&value) != nil {
			return 0, 0, false
		}
		if key == name {
			end := offset + int(d.InputOffset())
			return end - len(value), end, true
		}
	}
	return 0, 0, false
}

// quoted returns the text as a JSON string in one line.
func quoted(s string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string always can be
	return bytes.TrimSpace(b.Bytes())
}
