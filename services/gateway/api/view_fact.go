package api

import (
	"time"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/text"
)

// staleMonths is the age from which a fact counts as stale: by its source's date or, as most pages have none, by when it was retrieved.
const staleMonths = 6

// Fact is a fact as the API shows it.
type Fact struct {
	ID            string         `json:"id"`
	Thread        string         `json:"thread"`
	Run           *string        `json:"run" doc:"That added it; null when a person did"`
	Statement     string         `json:"statement"`
	Confidence    float64        `json:"confidence" doc:"0 to 1"`
	Tags          []string       `json:"tags"`
	Source        *FactSource    `json:"source"`
	Excerpt       *event.Excerpt `json:"excerpt" doc:"Literal part of the run's report; start and end are byte offsets"`
	Support       Support        `json:"support"`
	Disputed      bool           `json:"disputed"`
	Stale         bool           `json:"stale" doc:"By the date of the newest page it was found on or, where that has none, by when it was read, it is older than 6 months"`
	StaleSince    *time.Time     `json:"stale_since" doc:"null when it is not stale"`
	SupersededBy  *string        `json:"superseded_by"`
	SeenElsewhere []Elsewhere    `json:"seen_elsewhere"`
	Related       []string       `json:"related" doc:"Facts of this thread that tell of the same thing with another detail"`
	PinnedAt      *time.Time     `json:"pinned_at"`
	EditedAt      *time.Time     `json:"edited_at"`
	DismissedAt   *time.Time     `json:"dismissed_at"`
	DuplicateOf   *string        `json:"duplicate_of"`
	Removed       bool           `json:"removed" doc:"A rebuild did not find it again"`
	ConfirmedAt   *time.Time     `json:"confirmed_at" doc:"When a later run last found it again"`
	Engine        string         `json:"engine"`
	Replayed      bool           `json:"replayed"`
	CreatedAt     time.Time      `json:"created_at"`
}

// FactSource is the source of a fact, shown as it was first cited.
type FactSource struct {
	ID          string     `json:"id"`
	URL         string     `json:"url"`
	Title       string     `json:"title"`
	PublishedAt *time.Time `json:"published_at"`
}

// Support says where a fact was found: by its own run, by runs that said the same, and as facts that were dropped as its duplicates.
type Support struct {
	Pages   int          `json:"pages"`
	Sites   int          `json:"sites" doc:"Registrable domains"`
	Copies  int          `json:"copies" doc:"Sites that only repeat a sentence of another one"`
	Sources []FactSource `json:"sources"`
}

// Elsewhere is a fact of another thread that was judged to say the same, or to contradict.
type Elsewhere struct {
	Fact     string `json:"fact"`
	Thread   string `json:"thread"`
	Relation string `json:"relation"`
}

// factViewer shows the facts of one thread. What they have in common is worked out once.
type factViewer struct {
	thread    *notebook.Thread
	now       time.Time
	merged    map[string][]*notebook.Fact
	disputed  map[string]bool
	elsewhere map[string][]Elsewhere
	related   map[string][]string
}

// viewFacts prepares the showing of a thread's facts. Other threads are looked at for links to it.
func viewFacts(n *notebook.Notebook, t *notebook.Thread, now time.Time) *factViewer {
	v := &factViewer{
		thread: t, now: now, merged: map[string][]*notebook.Fact{},
		disputed: map[string]bool{}, elsewhere: map[string][]Elsewhere{}, related: map[string][]string{},
	}
	for _, id := range t.FactIDs {
		if f := t.Facts[id]; f.Root != "" {
			root := t.Root(id)
			v.merged[root] = append(v.merged[root], f)
		}
	}
	for _, p := range t.Contradictions() {
		v.disputed[p.Elder], v.disputed[p.Newer] = true, true
	}
	for _, p := range t.Related() {
		v.related[p.Elder] = append(v.related[p.Elder], p.Newer)
		v.related[p.Newer] = append(v.related[p.Newer], p.Elder)
	}
	for _, l := range t.Links {
		if n.Thread(l.OtherThread).Exists() { // a deleted thread takes everything with it, also what others know of it
			v.elsewhere[l.Fact] = append(v.elsewhere[l.Fact], Elsewhere{Fact: l.Other, Thread: l.OtherThread, Relation: l.Relation})
		}
	}
	for _, other := range n.Threads() {
		for _, l := range other.Links {
			if l.OtherThread == t.ID {
				v.elsewhere[l.Other] = append(v.elsewhere[l.Other], Elsewhere{Fact: l.Fact, Thread: other.ID, Relation: l.Relation})
			}
		}
	}
	return v
}

// source is a page as the thread shows it, of the date that this citation gives: what the page said of itself when the fact was taken from
// it, and not what a later version of it says.
func (v *factViewer) source(s *event.Source) *FactSource {
	if s == nil {
		return nil
	}
	if known := v.thread.Sources[s.ID]; known != nil {
		return &FactSource{ID: known.ID, URL: known.URL, Title: known.Title, PublishedAt: utc(s.PublishedAt)}
	}
	return &FactSource{ID: s.ID, URL: s.URL, Title: s.Title, PublishedAt: utc(s.PublishedAt)}
}

func (v *factViewer) view(f *notebook.Fact) Fact {
	view := Fact{
		ID: f.ID, Thread: v.thread.ID, Run: textOrNull(f.Run), Statement: f.Statement, Confidence: f.Confidence, Tags: some(f.Tags),
		Source: v.source(f.Source), Excerpt: copied(f.Excerpt), Disputed: v.disputed[f.ID], SeenElsewhere: some(v.elsewhere[f.ID]),
		Related:     some(v.related[f.ID]),
		DuplicateOf: textOrNull(f.Root), Removed: f.Removed, Engine: f.Engine, Replayed: f.Replayed, CreatedAt: f.At.UTC(),
	}
	view.Support, view.ConfirmedAt = v.support(f)
	view.StaleSince = v.staleSince(f)
	view.Stale = view.StaleSince != nil
	return view
}

// places lists where a fact was found, its own place first.
func (v *factViewer) places(f *notebook.Fact) []notebook.Support {
	places := f.Support
	for _, dropped := range v.merged[f.ID] {
		places = append(places[:len(places):len(places)], dropped.Support...)
	}
	return places
}

func (v *factViewer) support(f *notebook.Fact) (Support, *time.Time) {
	s := Support{Sources: []FactSource{}}
	pages, sites, said := map[string]bool{}, map[string]bool{}, map[string]string{}
	copies := map[string]bool{}
	var confirmed time.Time
	for _, place := range v.places(f) {
		if r := v.thread.Runs[place.Run]; r != nil && place.Run != f.Run && r.Ended.After(confirmed) {
			confirmed = r.Ended
		}
		if place.Source == nil {
			continue
		}
		if !pages[place.Source.ID] {
			pages[place.Source.ID] = true
			s.Sources = append(s.Sources, *v.source(place.Source))
		}
		site := text.Site(place.Source.URL)
		sites[site] = true
		if place.Excerpt == nil {
			continue
		}
		sentence := text.Fingerprint(place.Excerpt.Text)
		if first, known := said[sentence]; known && first != site {
			copies[site] = true
		} else if !known {
			said[sentence] = site
		}
	}
	s.Pages, s.Sites, s.Copies = len(pages), len(sites), len(copies)
	return s, timeOrNull(confirmed)
}

// staleSince says since when the newest place where the fact was found is old; nil when it is not.
func (v *factViewer) staleSince(f *notebook.Fact) *time.Time {
	newest := dated(v.source(f.Source), f.At)
	for _, place := range v.places(f) {
		retrieved := f.At
		if r := v.thread.Runs[place.Run]; r != nil && !r.Ended.IsZero() {
			retrieved = r.Ended
		}
		if at := dated(v.source(place.Source), retrieved); at.After(newest) {
			newest = at
		}
	}
	if since := newest.AddDate(0, staleMonths, 0); since.Before(v.now) {
		return timeOrNull(since)
	}
	return nil
}

func dated(s *FactSource, retrieved time.Time) time.Time {
	if s != nil && s.PublishedAt != nil {
		return *s.PublishedAt
	}
	return retrieved
}

func textOrNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
