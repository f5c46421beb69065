package api

import (
	"encoding/json"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// Nullable is a field that may be null, which is something else than left out (the zero value). Value is nil for null.
type Nullable[T any] struct {
	Set   bool
	Value *T
}

// UnmarshalJSON takes a value or null.
func (n *Nullable[T]) UnmarshalJSON(body []byte) error {
	n.Set, n.Value = true, nil
	return json.Unmarshal(body, &n.Value)
}

// MarshalJSON is the reverse.
func (n Nullable[T]) MarshalJSON() ([]byte, error) { return json.Marshal(n.Value) }

// Schema is that of T, or null.
func (n Nullable[T]) Schema(r huma.Registry) *huma.Schema {
	var v T
	s := *huma.SchemaFromType(r, reflect.TypeOf(v))
	s.Nullable = true
	return &s
}
