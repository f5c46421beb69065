package api

import (
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// tellNulls says in the schemas of objects which of their objects may be null: a pointer is told as null when it is nil, unless it is left out then.
// The framework says so of plain values only, and refuses the tag on a reference.
func tellNulls(schemas huma.Registry) {
	for name, s := range schemas.Map() {
		t := schemas.TypeFromRef("#/components/schemas/" + name)
		for t != nil && t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t == nil || t.Kind() != reflect.Struct {
			continue
		}
		for field := range t.Fields() {
			name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
			property := s.Properties[name]
			if field.Type.Kind() != reflect.Pointer || strings.Contains(options, "omit") || property == nil || property.Ref == "" {
				continue
			}
			s.Properties[name] = &huma.Schema{OneOf: []*huma.Schema{{Ref: property.Ref}, {Type: "null"}}, Description: property.Description}
		}
	}
}
