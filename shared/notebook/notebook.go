package notebook

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/factstream/factstream/jetstream/projector"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/text"
)

// Message is one message of the notebook stream.
type Message = projector.Message

// Notebook is all threads folded from the stream. It is not safe for concurrent use; Tail guards one.
type Notebook struct {
	threads map[string]*Thread
	order   []string
	recent  map[string][]appended
	bad     []BadEvent
	badSeen int

	withoutExcerpts bool // of the literal parts of reports behind the facts, which only those need who show them
}

// ErrUnknownType: an event of the notebook is of a type, or of a version of one, that this program does not know. It is kept, and every fold passes it over;
// a program that knows it applies it.
var ErrUnknownType = errors.New("a type that this version does not know")

// BadEvent is a message that could not be applied: it is passed over, and shown to whoever runs the system.
type BadEvent struct {
	Seq     uint64    `json:"seq"`
	Subject string    `json:"subject"`
	Error   string    `json:"error"`
	At      time.Time `json:"at"`
}

type appended struct {
	seq uint64
	id  string
}

const (
	// maxRecent ids are remembered per thread: many more than a thread can get while one append is in doubt (30 s).
	maxRecent = 512
	// maxBad bad events are kept for showing; all are counted.
	maxBad = 100
)

// NewNotebook is an empty notebook.
func NewNotebook() *Notebook {
	return &Notebook{threads: map[string]*Thread{}, recent: map[string][]appended{}}
}

// Apply folds one message. What it gives is the event for whoever projects further, and false when the message is no event, has been seen before, or
// could not be applied; such a message only moves the thread's position. So does an event of an unknown type (true): a bad event too, unless it is one
// of somebody else's (ext.).
func (n *Notebook) Apply(m Message) (event.Event, bool) {
	e, applied, _ := n.Examine(m)
	return e, applied
}

// Examine is Apply that also says why the message is a bad event; nil when it is none. Bad remembers only the first of them.
func (n *Notebook) Examine(m Message) (e event.Event, applied bool, problem error) {
	e, applied, problem = n.fold(m)
	if problem != nil {
		n.reject(m, problem)
	}
	return e, applied, problem
}

func (n *Notebook) fold(m Message) (e event.Event, applied bool, problem error) {
	e, err := event.Parse(m.Subject, m.Data)
	e.Seq, e.Stored, e.Original = m.Seq, m.Time, cmp.Or(m.Original, m.Seq)
	if err != nil {
		if thread := threadOf(m.Subject); thread != "" {
			n.thread(thread).Seq = m.Seq
		}
		return e, false, err
	}
	t := n.thread(e.Thread)
	if e.ID != "" && n.seen(e.Thread, e.ID, 0) {
		t.Seq = m.Seq
		return e, false, nil
	}
	n.remember(e)
	if n.withoutExcerpts {
		dropExcerpts(e)
	}
	if UnknownType(e) {
		problem = fmt.Errorf("%w: %q on %s", ErrUnknownType, text.Truncate(e.Type, 80), m.Subject)
	}
	if err := evolve(t, e); err != nil {
		t.Seq = m.Seq
		return e, false, err
	}
	return e, true, problem
}

// dropExcerpts takes the excerpts from an event that nobody else has.
func dropExcerpts(e event.Event) {
	if d, ok := e.Data.(event.FactsDistilled); ok {
		for i := range d.Facts {
			d.Facts[i].Excerpt = nil
		}
		for i := range d.Support {
			d.Support[i].Excerpt = nil
		}
	}
}

// UnknownType says that an event is of the notebook's own families and yet of a type that this version does not know.
func UnknownType(e event.Event) bool {
	_, unknown := e.Data.(event.Unknown)
	return unknown && !strings.HasPrefix(e.Kind(), "ext.")
}

// evolve keeps one event that cannot be applied from ending the process that reads it.
func evolve(t *Thread, e event.Event) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("apply %s: %v", e.Type, p)
		}
	}()
	t.Evolve(e)
	return nil
}

func (n *Notebook) reject(m Message, err error) {
	n.badSeen++
	if len(n.bad) < maxBad {
		n.bad = append(n.bad, BadEvent{Seq: m.Seq, Subject: m.Subject, Error: err.Error(), At: m.Time})
	}
}

func (n *Notebook) thread(id string) *Thread {
	t := n.threads[id]
	if t == nil {
		t = NewThread(id)
		n.threads[id] = t
		n.order = append(n.order, id)
	}
	return t
}

func (n *Notebook) remember(e event.Event) {
	ids := append(n.recent[e.Thread], appended{e.Seq, e.ID})
	if len(ids) > 2*maxRecent {
		ids = append(ids[:0:0], ids[len(ids)-maxRecent:]...)
	}
	n.recent[e.Thread] = ids
}

// seen says whether an event of this id is in the thread after a sequence.
func (n *Notebook) seen(thread, id string, after uint64) bool {
	ids := n.recent[thread]
	for i := len(ids) - 1; i >= 0 && ids[i].seq > after; i-- {
		if ids[i].id == id {
			return true
		}
	}
	return false
}

// Thread gives the state of a thread; of one that was never seen, the empty state.
func (n *Notebook) Thread(id string) *Thread {
	if t := n.threads[id]; t != nil {
		return t
	}
	return NewThread(id)
}

// Threads gives all threads in order of first appearance, deleted ones included.
func (n *Notebook) Threads() []*Thread {
	threads := make([]*Thread, len(n.order))
	for i, id := range n.order {
		threads[i] = n.threads[id]
	}
	return threads
}

// Bad gives the first bad events and how many there are in all.
func (n *Notebook) Bad() ([]BadEvent, int) { return n.bad, n.badSeen }

// threadOf reads the thread from a subject of five tokens; empty when it has not that form.
func threadOf(subject string) string {
	start, dots := 0, 0
	for i := range len(subject) {
		if subject[i] != '.' {
			continue
		}
		dots++
		switch dots {
		case 2:
			start = i + 1
		case 3:
			return subject[start:i]
		}
	}
	return ""
}
