// Package provider is what the researcher needs of a paid, streaming web research API: one interface, one typed
// failure, and one loop that reads a stream (Read) which every provider and every replay goes through.
//
// tabstack makes the live call, replay plays a recorded stream; providertest is the conformance suite of both.
package provider

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/factstream/factstream/shared/text"
)

// Provider answers a research question with a stream of events that ends in a report.
type Provider interface {
	// Name is the provider's name, as events and leases carry it ("tabstack"). A replay has the recorded one's name.
	Name() string
	// Research makes one call and reads it to its end. It hands every byte and every event to the sink and returns the
	// report, or an *Error that says whether the call may be made again and what it may have cost. It never makes a
	// second call by itself. Ending ctx closes the connection.
	Research(ctx context.Context, req Request, sink Sink) (Result, error)
	// Decode reads the bytes of an earlier call (what Sink.Bytes was given, in order) by the same rules and to the same
	// result. The end of r stands for the end of the connection.
	Decode(ctx context.Context, r io.Reader, sink Sink) (Result, error)
}

// Request is one question to the provider. Options that are unset (their zero value) are left out of the call, so that
// the provider's own defaults hold.
type Request struct {
	// Query is the question: 1 to 10,000 code points of valid UTF-8.
	Query string
	// Mode is the provider's own word for how thorough it is to be; of tabstack "fast" or "balanced".
	Mode string
	// Nocache asks the provider to look again instead of answering from its cache.
	Nocache bool
	// FetchTimeout bounds how long the provider waits for one page, in whole seconds (a part counts as one).
	FetchTimeout time.Duration
	// Key is the credential. It goes into the request's header and nowhere else.
	Key string
}

// Sink receives a call as it happens. Its methods are called from one goroutine, in the order of the stream. An error
// that it returns ends the call with code not_kept, unless the report was already whole.
type Sink interface {
	// Bytes gets every byte of the answer, in order, before anything is decoded from it. p is valid during the call.
	Bytes(p []byte) error
	// Event gets every event up to and with the terminal one; a broken last event of a cut stream is not one.
	Event(e Event) error
}

// Event is one event of the provider, as it came. Names are the provider's own vocabulary, new ones included.
type Event struct {
	Seq  int       // 1 for the first event of the call, without gaps
	Name string    // "message" when the provider gave none
	Data []byte    // valid UTF-8, usually JSON; the receiver may keep it
	At   time.Time // when it was read
}

// Result is what a call that came to its end brought.
type Result struct {
	// Report is the report in Markdown, never blank. A marker [n] in it means the n-th of Pages.
	Report string
	// Metadata is the provider's whole metadata, verbatim; nil when it sent none.
	Metadata json.RawMessage
	// Pages are the cited pages in the provider's order; Pages[i].N is i+1. A page that could not be read keeps its
	// place, so that no marker moves.
	Pages []Page
	// Usage is what the provider said it used or charged, verbatim; nil when it said nothing.
	Usage json.RawMessage
	// Gaps are the provider's own evaluations of what is still missing, in order.
	Gaps []GapEvaluation
	// Counts tells how much came.
	Counts Counts
	// Warnings are sentences for a person about what was odd, though the report is whole.
	Warnings []string
}

// Page is a page that the report cites.
type Page struct {
	N           int      `json:"n"` // the number of its marker, from 1
	ID          string   `json:"id,omitempty"`
	URL         string   `json:"url"` // as the provider gave it; not checked
	Title       string   `json:"title,omitempty"`
	Summary     string   `json:"summary,omitempty"`
	Claims      []string `json:"claims,omitempty"`
	Relevance   string   `json:"relevance,omitempty"`
	Reliability string   `json:"reliability,omitempty"`
	Depth       int      `json:"depth,omitempty"` // links followed from a search result, 0 for the result itself
	ParentURL   string   `json:"parent_url,omitempty"`
	// PublishedAt is the date that the provider gave, at UTC midnight of its first day unless it has a time of day; nil
	// when it gave none that can be read.
	PublishedAt *time.Time `json:"published_at,omitempty"`
	// PublishedPrecision says how much of PublishedAt was given; "" without PublishedAt.
	PublishedPrecision text.Precision `json:"published_precision,omitempty"`
	// PublishedRaw is the date as the provider wrote it, also when it could not be read.
	PublishedRaw string `json:"published_raw,omitempty"`
	// FullText is the page's text where the provider sent it; it may be long.
	FullText string `json:"full_text,omitempty"`
	// Raw is the page as the provider sent it, without its full text.
	Raw json.RawMessage `json:"raw,omitempty"`
}

// GapEvaluation is one evaluation, by the provider, of what its research has not covered.
type GapEvaluation struct {
	Coverage       string               `json:"coverage,omitempty"` // the provider's own word
	ShouldContinue bool                 `json:"should_continue,omitempty"`
	Description    string               `json:"description,omitempty"`
	Assessments    []QuestionAssessment `json:"assessments,omitempty"`
	SearchQueries  []string             `json:"search_queries,omitempty"`
	NewQuestions   []string             `json:"new_questions,omitempty"`
}

// QuestionAssessment is how far one of the provider's own questions was answered.
type QuestionAssessment struct {
	Question string `json:"question"`
	Status   string `json:"status,omitempty"` // the provider's own word
	Findings string `json:"findings,omitempty"`
}

// Counts tells how much a call brought.
type Counts struct {
	Bytes         int64 `json:"bytes"`    // of the answer, decompressed
	Events        int   `json:"events"`   // up to and with the terminal one
	Comments      int64 `json:"comments"` // signs of life without content
	PagesAnalyzed int   `json:"pages_analyzed"`
	PagesCited    int   `json:"pages_cited"`
	Queries       int   `json:"queries"` // searches that the provider says it made
}
