package event

import (
	"encoding/json"
	"time"
)

// RunCompleted settles a run: its report is kept and its cost is spent.
type RunCompleted struct {
	Attempt  int             `json:"attempt"`
	Cost     int             `json:"cost"` // credits spent
	Dollars  float64         `json:"dollars,omitempty"`
	Report   Blob            `json:"report"` // Markdown
	Metadata Blob            `json:"metadata"`
	Raw      Blob            `json:"raw"` // the provider's bytes of the attempt, as they came; by reference
	Pages    []Page          `json:"pages"`
	Gaps     []string        `json:"gaps,omitempty"` // what the provider itself found missing
	Usage    json.RawMessage `json:"usage,omitempty"`
	Events   int             `json:"events"` // provider events
	Bytes    int64           `json:"bytes"`
	Warnings []string        `json:"warnings,omitempty"`
	Replayed bool            `json:"replayed,omitempty"`
}

// Page is one page that the report cites. N is the number of its marker, from 1.
type Page struct {
	N           int        `json:"n"`
	Source      string     `json:"source,omitempty"` // source id; empty when the URL is not one of the web
	URL         string     `json:"url"`
	Canonical   string     `json:"canonical_url,omitempty"`
	Title       string     `json:"title,omitempty"`
	Summary     string     `json:"summary,omitempty"`
	Claims      Claims     `json:"claims"`
	PublishedAt *time.Time `json:"published_at,omitempty"`
	FullText    Blob       `json:"full_text"`
}

// Claims of a page: inline, or by reference when they are too bulky for the event.
type Claims struct {
	Texts []string `json:"texts,omitempty"`
	Blob  *Blob    `json:"blob,omitempty"` // JSON array of strings
}

// Kept lists what of an answer is kept by reference, outside the event. The same content may be listed twice.
func (c RunCompleted) Kept() []Blob {
	var kept []Blob
	add := func(b Blob) {
		if b.Ref != "" {
			kept = append(kept, b)
		}
	}
	add(c.Report)
	add(c.Metadata)
	add(c.Raw)
	for _, p := range c.Pages {
		add(p.FullText)
		if p.Claims.Blob != nil {
			add(*p.Claims.Blob)
		}
	}
	return kept
}

// Kind implements Data.
func (RunCompleted) Kind() string { return "run.completed" }

var _ = register[RunCompleted](1)
