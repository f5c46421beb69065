package projection

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

// batch is what one batch of messages changes in the file, in order.
type batch struct {
	changes   []change
	events    []RawEvent // those that are left of what came, and that Events shows
	purges    []purge
	messages  int
	size      int    // of the messages, in bytes
	last      uint64 // sequence of the last message
	unfetched bool   // a text came by reference
}

// change is one statement.
type change struct {
	query string
	args  []any
}

func (b *batch) add(query string, args ...any) { b.changes = append(b.changes, change{query, args}) }

// collect folds messages into the notebook and says what that changes: first the rows that follow from one event alone, then those of every entity
// that an event touched, as it is after the last message.
func collect(n *notebook.Notebook, messages []notebook.Message) *batch {
	b := &batch{messages: len(messages)}
	touched := map[string]*touched{}
	var order []string
	for _, m := range messages {
		b.last = m.Seq
		b.size += len(m.Data)
		e, applied, bad := n.Examine(m)
		problem := ""
		if bad != nil {
			problem = bad.Error()
		}
		thread := strings.SplitN(m.Subject, ".", 4)[2] // the stream takes no subject of another form
		b.raw(m, e, thread, problem)
		t := touched[thread]
		if t == nil {
			t = newTouched()
			touched[thread] = t
			order = append(order, thread)
		}
		if applied {
			b.once(e)
			t.touch(n.Thread(thread), e)
		}
	}
	for _, id := range order {
		b.thread(n.Thread(id), touched[id])
	}
	return b
}

const insertEvent = `INSERT OR REPLACE INTO events (seq, original, subject, id, type, time, stored, thread, cause, traceparent, problem, unknown, body)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

func (b *batch) raw(m notebook.Message, e event.Event, thread, problem string) {
	var original any
	if m.Original != m.Seq {
		original = orNull(m.Original)
	}
	unknown := problem != "" && notebook.UnknownType(e)
	b.add(insertEvent, m.Seq, original, m.Subject, e.ID, e.Type, moment(e.Time), stored(m.Time), thread, e.Cause,
		orNull(m.Header.Get("traceparent")), orNull(problem), unknown, m.Data)
	if problem == "" || unknown { // as the query of eventsInFile
		b.events = append(b.events, RawEvent{Seq: m.Seq, Type: e.Type, Thread: thread, Body: m.Data})
	}
}

// purge deletes the events of a thread before its tombstone.
func (b *batch) purge(d purge) {
	b.add(`DELETE FROM events WHERE thread = ? AND seq < ?`, d.thread, d.before)
	b.events = slices.DeleteFunc(b.events, d.covers)
	b.purges = append(b.purges, d)
}

// storedLayout has always nine decimals: the texts of two times compare as the times do.
const storedLayout = "2006-01-02T15:04:05.000000000Z"

func stored(t time.Time) string { return t.UTC().Format(storedLayout) }

// once adds the rows that follow from one event alone: what a run cited, links, and every brief and map of the thread's history.
func (b *batch) once(e event.Event) {
	switch d := e.Data.(type) {
	case event.RunCompleted:
		b.report(e, d)
		for _, page := range d.Pages {
			b.page(e, page)
		}
	case event.RunDeleted: // the receipt goes, sources and facts stay
		b.add(`DELETE FROM reports WHERE run = ?`, e.Entity)
	case event.FactsDistilled: // a generation says all of its run's support anew
		b.add(`DELETE FROM support WHERE thread = ? AND run = ?`, e.Thread, e.Entity)
	case event.ContradictionsFound:
		for _, l := range d.Links {
			b.add(`INSERT OR REPLACE INTO links (thread, fact, other, other_thread, relation) VALUES (?, ?, ?, ?, ?)`,
				e.Thread, l.Fact, l.Other, l.OtherThread, l.Relation)
		}
	case event.BriefWritten:
		b.add(`INSERT OR REPLACE INTO briefs (thread, cycle, closing, run_count, findings, disputed, gaps, relationships, withheld,
			dropped_sentences, markdown, engine, model, created_at, seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			e.Thread, e.Entity, e.N, d.RunCount, list(d.Findings), list(d.Disputed), list(d.Gaps), list(d.Relationships), list(d.Withheld),
			d.DroppedSentences, d.Markdown, d.Engine, d.Model, when(e.Time), e.Seq)
	case event.CoverageMapped:
		b.add(`INSERT OR REPLACE INTO coverage (thread, cycle, closing, topics, engine, model, created_at, seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			e.Thread, e.Entity, e.N, list(d.Topics), d.Engine, d.Model, when(e.Time), e.Seq)
	case event.ThreadDeleted:
		for _, table := range []string{"runs", "attempts", "reports", "pages", "questions", "facts", "support", "pairs", "links", "briefs", "coverage"} {
			b.add(`DELETE FROM `+table+` WHERE thread = ?`, e.Thread)
		}
		b.purge(purge{thread: e.Thread, before: e.Seq})
		b.add(`INSERT OR REPLACE INTO threads (id, deleted, spent, reserved, dollars, position) VALUES (?, 1, ?, 0, ?, ?)`, e.Thread, d.Spent, d.Dollars, e.Seq)
	}
}

func (b *batch) report(e event.Event, d event.RunCompleted) {
	markdown := any(d.Report.Text)
	if d.Report.Ref != "" {
		markdown, b.unfetched = nil, true
	}
	m := d.Metadata
	b.add(`INSERT OR REPLACE INTO reports (run, thread, markdown, ref, sha256, size, metadata, metadata_ref, metadata_sha256, metadata_size)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		e.Entity, e.Thread, markdown, orNull(d.Report.Ref), orNull(d.Report.SHA256), orNull(d.Report.Size),
		orNull(m.Text), orNull(m.Ref), orNull(m.SHA256), orNull(m.Size))
}

func (b *batch) page(e event.Event, p event.Page) {
	claims, blob := any(list(p.Claims.Texts)), event.Blob{}
	if p.Claims.Blob != nil {
		claims, blob, b.unfetched = nil, *p.Claims.Blob, true
	}
	b.add(`INSERT OR REPLACE INTO pages (run, n, thread, source, url, canonical_url, title, summary, published_at, claims, claims_ref, claims_sha256,
		claims_size, seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		e.Entity, p.N, e.Thread, p.Source, p.URL, p.Canonical, p.Title, p.Summary, maybe(p.PublishedAt),
		claims, orNull(blob.Ref), orNull(blob.SHA256), orNull(blob.Size), e.Seq)
}

// touched names the entities of a thread whose rows may have changed. Support is that of a run for a fact.
type touched struct {
	runs, questions, facts, pairs map[string]bool
	support                       map[[2]string]bool
}

func newTouched() *touched {
	return &touched{
		runs: map[string]bool{}, questions: map[string]bool{}, facts: map[string]bool{}, pairs: map[string]bool{}, support: map[[2]string]bool{},
	}
}

// touch notes what an event touched. The rows of an entity depend on nothing but the entity, so that this is enough.
func (c *touched) touch(t *notebook.Thread, e event.Event) {
	for _, id := range []string{e.Run, e.Entity} {
		if r := t.Runs[id]; r != nil {
			c.runs[id] = true
			c.questions[r.Requested.Question] = true // its status is computed from its runs
		}
	}
	switch d := e.Data.(type) {
	case event.ThreadCreated:
		c.questions[notebook.RootQuestionID(t.ID)] = true
	case event.QuestionAsked, event.QuestionMoved, event.QuestionDismissed:
		c.questions[e.Entity] = true
	case event.QuestionsProposed:
		for _, q := range d.Questions {
			c.questions[q.ID] = true
		}
	case event.FactsDistilled:
		for _, f := range d.Facts {
			c.facts[f.ID] = true
			c.support[[2]string{f.ID, e.Entity}] = true
		}
		for _, s := range d.Support {
			c.support[[2]string{s.Fact, e.Entity}] = true
		}
		for _, id := range d.Removed {
			c.facts[id] = true
		}
	case event.ContradictionsFound:
		for _, v := range d.Verdicts {
			c.pairs[v.Pair] = true
		}
		for _, drop := range d.Drops {
			c.facts[drop.Fact] = true
		}
	}
}

func (b *batch) thread(t *notebook.Thread, c *touched) {
	if t.Deleted { // somebody's own events may follow the tombstone
		b.add(`UPDATE threads SET position = ? WHERE id = ?`, t.Seq, t.ID)
		return
	}
	if !t.Exists() { // nothing but events of others
		return
	}
	b.threadRow(t)
	for _, id := range sorted(c.runs) {
		b.runRow(t, t.Runs[id])
	}
	for _, id := range sorted(c.questions) {
		if q := t.Questions[id]; q != nil {
			b.questionRow(t, q)
		}
	}
	for _, id := range sorted(c.facts) {
		if f := t.Facts[id]; f != nil {
			b.factRow(t, f)
		}
	}
	pairs := slices.SortedFunc(maps.Keys(c.support), func(x, y [2]string) int { return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1])) })
	for _, p := range pairs {
		b.supportRows(t, p[0], p[1])
	}
	for _, id := range sorted(c.pairs) {
		if p := t.Pairs[id]; p != nil {
			b.pairRow(t, p)
		}
	}
}

func (b *batch) threadRow(t *notebook.Thread) {
	status, reason := t.Status()
	var replay, stage, why, since any
	if t.Replay != nil {
		replay = *t.Replay
	}
	if k := t.KnowledgeError; k != nil {
		stage, why, since = k.Stage, k.Reason, moment(k.Since)
	}
	s := t.Settings
	b.add(`INSERT OR REPLACE INTO threads (id, deleted, question, title, tags, status, reason_code, reason_text, archived, provider, mode, depth, batch,
		auto, engine, replay, budget, spent, reserved, dollars, answers, answer_budget, cycle, error_stage, error_reason, error_since, created_at,
		updated_at, position) VALUES (?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		t.ID, t.Question, t.Title, list(t.Tags), status, reason.Code, reason.Text, t.Archived, s.Provider, s.Mode, s.Depth, s.Batch,
		s.Auto, s.Engine, replay, t.Ledger.Budget, t.Ledger.Spent, t.Ledger.Held(), t.Ledger.Dollars, t.Ledger.Answers, maybe(t.Ledger.AnswerBudget),
		len(t.Cycles), stage, why, since, moment(t.Created), moment(t.Updated), t.Seq)
}

func (b *batch) runRow(t *notebook.Thread, r *notebook.Run) {
	var cost, dollars, code, detail, retryable, engine, leftOut, unresolved, distilled, judged, usage any
	if c := r.Completed; c != nil {
		cost, dollars, usage = c.Cost, c.Dollars, orNull(string(c.Usage))
	}
	if f := r.Failure; f != nil {
		cost, code, detail, retryable = f.Cost, f.Code, f.Detail, f.Retryable
	}
	if o := r.Distilled; o != nil {
		engine, distilled, leftOut, unresolved = o.Engine, moment(o.At), r.LeftOut, r.UnresolvedMarkers
	}
	if o := r.Judged; o != nil {
		judged = moment(o.At)
	}
	q := r.Requested
	b.add(`INSERT OR REPLACE INTO runs (id, thread, question, text, kind, status, provider, mode, depth, cycle, nocache, replayed, reserved, cost, dollars,
		requested_at, finished_at, failure_code, failure_detail, failure_retryable, generation, open, distilled_at, judged_at, engine, facts_left_out,
		unresolved_markers, usage, deleted, seq)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		r.ID, t.ID, q.Question, q.Text, q.RunKind, r.Status, q.Provider, q.Mode, q.Depth, q.Cycle, q.Nocache, q.Replay, q.Cost, cost, dollars,
		when(r.At), moment(r.Ended), code, detail, retryable, r.Gen, r.Open, distilled, judged, engine, leftOut,
		unresolved, usage, r.Deleted, r.Seq)
	for _, a := range r.Attempts {
		b.add(`INSERT OR REPLACE INTO attempts (run, n, thread, started_at, ended_at, code, detail, retry_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
			r.ID, a.N, t.ID, when(a.Started), moment(a.Ended), a.Code, a.Detail, moment(a.RetryAt))
	}
}

func (b *batch) questionRow(t *notebook.Thread, q *notebook.Question) {
	b.add(`INSERT OR REPLACE INTO questions (id, thread, text, origin, status, score, depth, parent_run, rank, asked_at, seq)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		q.ID, t.ID, q.Text, q.Origin, t.QuestionStatus(q), q.Score, q.Depth, q.ParentRun, q.Rank, when(q.At), q.Seq)
}

func (b *batch) factRow(t *notebook.Thread, f *notebook.Fact) {
	var source, url, title, published any
	if s := f.Source; s != nil {
		source, url, title, published = s.ID, s.URL, s.Title, maybe(s.PublishedAt)
	}
	start, end, excerpt := excerptColumns(f.Excerpt)
	b.add(`INSERT OR REPLACE INTO facts (id, thread, run, statement, fingerprint, confidence, tags, source, url, title, published_at, excerpt_start,
		excerpt_end, excerpt, duplicate_of, removed, dismissed, pinned, edited, engine, replayed, created_at, seq)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		f.ID, t.ID, f.Run, f.Statement, f.Fingerprint, f.Confidence, list(f.Tags), source, url, title, published, start,
		end, excerpt, f.Root, f.Removed, f.Dismissed, f.Pinned, f.Edited, f.Engine, f.Replayed, when(f.At), f.Seq)
}

func (b *batch) supportRows(t *notebook.Thread, fact, run string) {
	f := t.Facts[fact]
	if f == nil {
		return
	}
	i := 0
	for _, s := range f.Support {
		if s.Run != run {
			continue
		}
		var source, url any
		if s.Source != nil {
			source, url = s.Source.ID, s.Source.URL
		}
		start, end, excerpt := excerptColumns(s.Excerpt)
		b.add(`INSERT OR REPLACE INTO support (fact, run, i, thread, source, url, excerpt_start, excerpt_end, excerpt) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
			fact, run, i, t.ID, source, url, start, end, excerpt)
		i++
	}
}

func (b *batch) pairRow(t *notebook.Thread, p *notebook.Pair) {
	b.add(`INSERT OR REPLACE INTO pairs (thread, id, elder, elder_thread, elder_fingerprint, newer, newer_fingerprint, relation, related, reason,
		similarity, engine, run, judged_at, seq) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		t.ID, p.Pair, p.Elder, p.ElderThread, p.ElderFingerprint, p.Newer, p.NewerFingerprint, p.Relation, p.Related, p.Reason, p.Similarity,
		p.Engine, p.Run, when(p.At), p.Seq)
}

func excerptColumns(x *event.Excerpt) (start, end, text any) {
	if x == nil {
		return nil, nil, nil
	}
	return x.Start, x.End, x.Text
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }

// list is a JSON array; nothing is an empty one.
func list[T any](items []T) string {
	if len(items) == 0 {
		return "[]"
	}
	body, err := json.Marshal(items)
	if err != nil {
		return "[]" // only of values that came from JSON
	}
	return string(body)
}

// moment is a time as the file shows it; null when there is none.
func moment(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return when(t)
}

// when is a time that every such row has. An event of another program may not say it; a null there would be refused, and that event block the file for ever.
func when(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// maybe is the value behind a pointer, as a column.
func maybe[T any](p *T) any {
	if p == nil {
		return nil
	}
	if t, ok := any(*p).(time.Time); ok {
		return moment(t)
	}
	return *p
}

func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}
