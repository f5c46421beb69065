package api

import (
	"iter"
	"net/http"
)

// List is one page of a list.
type List[T any] struct {
	Items []T     `json:"items"`
	Next  *string `json:"next" doc:"Cursor of the next page; null on the last"`
}

// Paged is the part of a list's input that selects a page.
type Paged struct {
	Cursor string `query:"cursor" doc:"next of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"100"`
}

// page takes the items behind the cursor that are wanted. The cursor is the id of the last item of the page before, which is found whether it is still
// wanted or not; so a list may change between two pages.
func page[E, T any](all iter.Seq[E], id func(E) string, wanted func(E) bool, view func(E) T, in Paged) (List[T], error) {
	list := List[T]{Items: []T{}}
	skipping, last := in.Cursor != "", ""
	for e := range all {
		if skipping {
			skipping = id(e) != in.Cursor
			continue
		}
		if !wanted(e) {
			continue
		}
		if len(list.Items) == in.Limit {
			list.Next = &last
			return list, nil
		}
		list.Items, last = append(list.Items, view(e)), id(e)
	}
	if skipping {
		return list, problem(http.StatusUnprocessableEntity, "invalid-cursor", "The cursor %q is not one of this list. Begin again without it.", in.Cursor)
	}
	return list, nil
}

func all[E any](E) bool { return true }
