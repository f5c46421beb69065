package backup

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/event"
)

// wanted are the artifacts that a notebook needs: those that its events name, but for the receipts of deleted runs. It is all that is held in memory of a
// notebook that is copied: a few hundred bytes for each artifact.
type wanted struct {
	deleted  map[string]bool // runs
	named    map[string]artifact.Ref
	receipts map[string][]artifact.Ref // by run
}

// newWanted begins with the runs that are known to be deleted; those whose deletion is added come to them.
func newWanted(deleted map[string]bool) *wanted {
	w := &wanted{deleted: map[string]bool{}, named: map[string]artifact.Ref{}, receipts: map[string][]artifact.Ref{}}
	for run := range deleted {
		w.deleted[run] = true
	}
	return w
}

// add notes what a message names.
func (w *wanted) add(m projector.Message) {
	id := entityOf(m.Subject)
	if strings.HasPrefix(m.Subject, event.RunDeleted{}.Kind()+".") {
		w.deleted[id] = true
		return
	}
	for _, ref := range refsOf(threadOf(m.Subject), m.Data) {
		if strings.HasPrefix(m.Subject, "run.") {
			w.receipts[id] = append(w.receipts[id], ref)
		} else {
			w.keep(ref)
		}
	}
}

// keep wants an artifact that no event names.
func (w *wanted) keep(ref artifact.Ref) { w.named[ref.Ref] = ref }

// refs lists what is wanted, in order, each once.
func (w *wanted) refs() []artifact.Ref {
	var refs []artifact.Ref
	for _, ref := range w.named {
		refs = append(refs, ref)
	}
	for run, receipts := range w.receipts {
		if !w.deleted[run] {
			refs = append(refs, receipts...)
		}
	}
	slices.SortFunc(refs, func(a, b artifact.Ref) int { return strings.Compare(a.Ref, b.Ref) })
	return slices.CompactFunc(refs, func(a, b artifact.Ref) bool { return a.Ref == b.Ref })
}

// refsOf lists the artifacts that the body of an event names, wherever they stand in it.
func refsOf(thread string, body []byte) []artifact.Ref {
	if !bytes.Contains(body, []byte(`"ref"`)) {
		return nil
	}
	var value any
	if json.Unmarshal(body, &value) != nil {
		return nil
	}
	return refsIn(thread, value)
}

func refsIn(thread string, value any) (refs []artifact.Ref) {
	switch v := value.(type) {
	case []any:
		for _, item := range v {
			refs = append(refs, refsIn(thread, item)...)
		}
	case map[string]any:
		name, _ := v["ref"].(string)
		sum, _ := v["sha256"].(string)
		size, _ := v["size"].(float64)
		if ref := (artifact.Ref{Ref: name, SHA256: sum, Size: int64(size)}); ref.Valid(thread) {
			refs = append(refs, ref)
		}
		for _, item := range v {
			refs = append(refs, refsIn(thread, item)...)
		}
	}
	return refs
}
