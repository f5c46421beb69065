package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/factstream/factstream/shared/text"
)

const (
	maxReply      = 1 << 20 // bytes of a reply that are looked at; the longest honest one is under 40,000
	maxCandidates = 100     // opening braces that are tried,
	maxRescanned  = 4 << 20 // and bytes that are read again and again since objects do not end: no reply costs quadratic time
)

// Extract finds the answer in what a model wrote: the whole text if it is a valid object of the schema, else, with thoughts
// (<think>…</think>) and fences put aside, the first valid object in it. It is pure. Errors: ErrEmpty, ErrSchema with the reason, or
// another one when the schema itself is not usable.
func Extract(text string, schema json.RawMessage) (json.RawMessage, error) {
	check, err := compiled(schema)
	if err != nil {
		return nil, err
	}
	text = strings.TrimSpace(strings.TrimPrefix(text, "\uFEFF"))
	if text == "" {
		return nil, ErrEmpty
	}
	if len(text) > maxReply {
		return nil, fmt.Errorf("%w: %d bytes long", ErrSchema, len(text))
	}
	if err := conforms(check, []byte(text)); err == nil {
		return json.RawMessage(text), nil
	}
	why := errors.New("no JSON object in it")
	for _, part := range withoutThoughts(text) {
		object, err := firstObject(part, check)
		if err == nil {
			return object, nil
		}
		if err != errNoObject {
			why = err
		}
	}
	return nil, fmt.Errorf("%w: %w", ErrSchema, why)
}

// withoutThoughts returns the parts of a reply in which the answer may stand, the likeliest first. Some templates open the thought
// themselves, so a reply may hold the closing tag alone; and a tag may also be a word in the answer.
func withoutThoughts(text string) []string {
	for _, tag := range []string{"think", "thinking", "thought"} {
		if strings.HasPrefix(text, "<"+tag+">") {
			_, after, closed := strings.Cut(text, "</"+tag+">")
			if !closed {
				return nil
			}
			return []string{after}
		}
	}
	if at := strings.LastIndex(text, "</think>"); at >= 0 {
		return []string{text[at+len("</think>"):], text}
	}
	return []string{text}
}

var errNoObject = errors.New("no object")

// firstObject returns the first JSON object in text that conforms; without one, the reason why the first object did not.
func firstObject(text string, check *jsonschema.Schema) (json.RawMessage, error) {
	found := errNoObject
	rescanned := 0
	for range maxCandidates {
		open := strings.IndexByte(text, '{')
		if open < 0 {
			return nil, found
		}
		text = text[open:]
		var object json.RawMessage
		err := json.NewDecoder(strings.NewReader(text)).Decode(&object)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			rescanned += len(text)
		}
		if rescanned > maxRescanned {
			return nil, found
		}
		if err != nil {
			text = text[1:]
			continue
		}
		err = conforms(check, object)
		if err == nil {
			return object, nil
		}
		if found == errNoObject {
			found = err
		}
		text = text[len(object):]
	}
	return nil, found
}

func conforms(check *jsonschema.Schema, data []byte) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return err
	}
	if err := check.Validate(value); err != nil {
		return oneLine(err)
	}
	return nil
}

// oneLine says where and why a value does not conform, without the library's tree.
func oneLine(err error) error {
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	for len(invalid.Causes) > 0 {
		invalid = invalid.Causes[0]
	}
	why := fmt.Sprintf("at /%s: %s", strings.Join(invalid.InstanceLocation, "/"), invalid.ErrorKind.LocalizedString(english))
	return errors.New(text.Truncate(fold(why), 200))
}

var english = message.NewPrinter(language.English)

var schemas sync.Map // of compiled schemas by their text; there are as many as tasks

func compiled(schema json.RawMessage) (*jsonschema.Schema, error) {
	if known, ok := schemas.Load(string(schema)); ok {
		return known.(*jsonschema.Schema), nil
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, fmt.Errorf("the schema of the answer is not JSON: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	const name = "mem:answer"
	if err := compiler.AddResource(name, doc); err != nil {
		return nil, fmt.Errorf("the schema of the answer: %w", err)
	}
	check, err := compiler.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("the schema of the answer: %w", err)
	}
	schemas.Store(string(schema), check)
	return check, nil
}

// literal compacts a schema written over several lines. It panics on what is no JSON, when the package is loaded.
func literal(schema string) json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(schema)); err != nil {
		panic(fmt.Sprintf("model: schema: %v", err))
	}
	return b.Bytes()
}
