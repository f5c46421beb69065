// Package enginetest brings threads to the point where a model's step begins: a run that has completed with a report.
package enginetest

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/fixtures"
	"github.com/factstream/factstream/shared/artifact"
	"github.com/factstream/factstream/shared/config"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model/ollama/ollamatest"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/service"
	"github.com/factstream/factstream/shared/service/servicetest"
	"github.com/factstream/factstream/shared/text"
)

// Report is what a run brings.
type Report struct {
	Markdown string
	Pages    []Page
}

// Page is a cited page; the marker of the first one is [1].
type Page struct {
	URL, Title, Summary string
	Claims              []string
	Published           *time.Time
}

// Ollama is the change of a service's configuration that has it ask server.
func Ollama(server *ollamatest.Server) func(*config.Config) {
	return func(cfg *config.Config) {
		cfg.Ollama.Host, cfg.Ollama.ChatModel, cfg.Ollama.EmbedModel = server.URL(), ollamatest.ChatModel, ollamatest.EmbedModel
	}
}

// Create makes a thread for an engine ("auto", "ollama" or "extractive").
func Create(t testing.TB, s *service.Service, thread, engine, question string) {
	t.Helper()
	settings := servicetest.Settings()
	settings.Engine = engine
	settings.Budget = 1_000_000
	servicetest.Append(t, s, thread, notebook.CreateThread{Question: question, Settings: settings})
}

// Complete requests a run of the thread and completes it with the report. access says whether it is live or a replay.
func Complete(t testing.TB, s *service.Service, thread, run string, access notebook.Access, report Report) event.RunCompleted {
	t.Helper()
	completed := Completed(thread, report)
	CompleteWith(t, s, thread, run, access, completed)
	return completed
}

// CompleteWith is Complete with an outcome as it is.
func CompleteWith(t testing.TB, s *service.Service, thread, run string, access notebook.Access, completed event.RunCompleted) {
	t.Helper()
	servicetest.Append(t, s, thread, notebook.RequestRun{Run: run, Access: access})
	servicetest.Append(t, s, thread, notebook.StartAttempt{Run: run, Holder: "test", Max: 3})
	servicetest.Append(t, s, thread, notebook.CompleteRun{Run: run, Completed: completed})
}

// Completed is the event of a run that brought the report, with everything inline.
func Completed(thread string, report Report) event.RunCompleted {
	completed := event.RunCompleted{Attempt: 1, Cost: 250, Report: event.Blob{Text: report.Markdown}, Pages: []event.Page{}}
	for i, p := range report.Pages {
		page := event.Page{N: i + 1, URL: p.URL, Title: p.Title, Summary: p.Summary, Claims: event.Claims{Texts: p.Claims}, PublishedAt: p.Published}
		if canonical, err := text.CanonicalURL(p.URL); err == nil {
			page.Canonical, page.Source = canonical, notebook.SourceID(thread, canonical)
		}
		completed.Pages = append(completed.Pages, page)
	}
	return completed
}

// Keep puts a text among the artifacts of the thread, as the researcher does with what is too long for an event.
func Keep(t testing.TB, s *service.Service, thread, content string) event.Blob {
	t.Helper()
	ref, err := s.Artifacts.Put(t.Context(), thread, []byte(content))
	require.NoError(t, err)
	return event.Blob{Ref: ref.Ref, SHA256: ref.SHA256, Size: ref.Size}
}

// Lose removes what Keep kept.
func Lose(t testing.TB, s *service.Service, blob event.Blob) {
	t.Helper()
	require.NoError(t, s.Artifacts.Delete(context.WithoutCancel(t.Context()), artifact.Ref{Ref: blob.Ref, SHA256: blob.SHA256, Size: blob.Size}))
}

// Recorded is the report of a recorded tabstack run: "fast" or "balanced".
func Recorded(t testing.TB, mode string) Report {
	t.Helper()
	stream, err := fixtures.Stream("tabstack", mode)
	require.NoError(t, err)
	_, last, found := bytes.Cut(stream, []byte("event: complete\n"))
	require.True(t, found, "the stream has a complete event")
	line, _, _ := bytes.Cut(bytes.TrimPrefix(last, []byte("data: ")), []byte("\n"))
	var complete struct {
		Report   string
		Metadata struct {
			CitedPages []struct {
				URL, Title, Summary                                  string
				Claims                                               []string
				PublishedAt, PublishedDate, DatePublished, Published any
			}
		}
	}
	require.NoError(t, json.Unmarshal(line, &complete))
	report := Report{Markdown: complete.Report}
	for _, p := range complete.Metadata.CitedPages {
		page := Page{URL: p.URL, Title: p.Title, Summary: p.Summary, Claims: p.Claims}
		for _, said := range []any{p.PublishedAt, p.PublishedDate, p.DatePublished, p.Published} {
			if words, ok := said.(string); ok && page.Published == nil {
				if at, _, ok := text.ParseDate(words); ok {
					page.Published = &at
				}
			}
		}
		report.Pages = append(report.Pages, page)
	}
	require.NotEmpty(t, report.Pages)
	return report
}

// Live is the access of runs that count as asked for real; no call is made by these tests.
var Live = notebook.Access{Live: true}
