package event

//go:generate go run ./schemagen .

import (
	"embed"
	"fmt"
	"sort"
)

//go:embed *.schema.json
var schemas embed.FS

type entry struct {
	typ     string
	version int
	kind    string
	make    func() any
	value   func(any) Data
}

// registry has every type string that Parse can read. Old versions stay here for ever, each with its own upgrade in value.
var registry = map[string]entry{}

func register[T Data](version int) struct{} {
	var zero T
	e := entry{
		typ:     fmt.Sprintf("factstream.%s.v%d", zero.Kind(), version),
		version: version,
		kind:    zero.Kind(),
		make:    func() any { return new(T) },
		value:   func(p any) Data { return *(p.(*T)) },
	}
	registry[e.typ] = e
	if version > latest[e.kind].version {
		latest[e.kind] = e
	}
	return struct{}{}
}

// latest has the newest version of every kind.
var latest = map[string]entry{}

// TypeOf is the type string under which data is written: the newest version of its kind.
func TypeOf(data Data) string { return latest[data.Kind()].typ }

// Types lists the registered type strings in order.
func Types() []string {
	types := make([]string, 0, len(registry))
	for t := range registry {
		types = append(types, t)
	}
	sort.Strings(types)
	return types
}

// Schema is the JSON Schema (2020-12) of the data of a registered type.
func Schema(typ string) ([]byte, error) {
	if _, ok := registry[typ]; !ok {
		return nil, fmt.Errorf("no schema: type %q is not registered", typ)
	}
	return schemas.ReadFile(typ[len("factstream."):] + ".schema.json")
}

// New makes an empty value of a registered type, for tools that fill it by JSON. The result is a pointer.
func New(typ string) (any, bool) {
	e, ok := registry[typ]
	if !ok {
		return nil, false
	}
	return e.make(), true
}
