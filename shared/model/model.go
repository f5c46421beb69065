// Package model is what the notebook asks of a language model, and how an answer is checked before anything is done with it.
//
// A step builds a task (DistillTask, JudgeTask, QuestionsTask, BriefTask, CoverageTask): the question and numbered choices that
// the server prepared. Distill, Judge, Questions, Brief and Coverage render it, look the reply up among the kept ones or ask the
// model, and check it: a reply picks numbers and writes plain sentences. What is not on the list is dropped and counted, so no
// URL, quote or id in the notebook was ever typed by a model.
//
// Engines: model/ollama (a local language model) and model/extractive (none: rules over the same tasks).
package model

import (
	"context"
	"encoding/json"
	"time"
)

// Engine names, as settings and events carry them. Auto is a setting only: Choose turns it into one of the others.
const (
	EngineOllama     = "ollama"
	EngineExtractive = "extractive"
	EngineAuto       = "auto"
)

// Model is one engine. It is safe for use by several goroutines at once.
type Model interface {
	// Info says which models answer. It fails with ErrAway, ErrMissing and the like; with ErrMissing the Info returned still names
	// what is installed.
	Info(ctx context.Context) (Info, error)

	// Generate answers one request. The reply's text is what the engine wrote, not yet parsed: Extract finds the object in it.
	// Errors are those of this package (Class tells them apart), or the cause of ctx when the caller ended it.
	Generate(ctx context.Context, req Request) (Reply, error)

	// Embed returns one vector per text, in order: Info.Dimension values each, of Euclidean length 1. No texts give no vectors and
	// no call.
	Embed(ctx context.Context, texts []string, kind EmbedKind) ([][]float32, error)
}

// Direct is a Model that is part of this process and answers a task by its values. Then nobody has to render a request that nobody reads,
// nor to write an answer as JSON and take it apart again. It answers both ways alike.
type Direct interface {
	Model

	// Answer answers one task. The answer is of the task's reply type (a DistillReply to a DistillTask, and so on), by value, and as
	// JSON it is the text that Generate gives; the reply has all of Generate's but the text. Errors are those of Generate. The strings
	// of the answer are valid UTF-8 where those of the task are.
	Answer(ctx context.Context, task Task) (answer any, reply Reply, err error)
}

// Info describes an engine as it is now.
type Info struct {
	Engine      string   `json:"engine"`       // EngineOllama or EngineExtractive
	ChatModel   string   `json:"chat_model"`   // the tag as configured
	ChatDigest  string   `json:"chat_digest"`  // changes whenever the same request may be answered differently
	EmbedModel  string   `json:"embed_model"`  // the tag as configured
	EmbedDigest string   `json:"embed_digest"` // changes whenever the same text may get another vector
	Prefixes    string   `json:"prefixes"`     // name of the scheme of prefixes put before embedded texts, "" for none
	Dimension   int      `json:"dimension"`    // values per vector
	Floor       float64  `json:"floor"`        // cosine similarity from which two facts are put before the judge, -1..1
	FloorReason string   `json:"floor_reason"` // the figures that Floor was set by, for people
	Installed   []string `json:"installed"`    // models the engine could use, by name
}

// EmbedKind says what a text is embedded for: some models want different prefixes for what is searched and what is looked for.
type EmbedKind int

// The kinds of text to embed. Facts compared with one another are all documents.
const (
	Document EmbedKind = iota
	Query
)

// Priority orders those who wait for a model.
type Priority int

// Priorities: Interactive is for a person who waits, Batch for the chain.
const (
	Batch Priority = iota
	Interactive
)

// Task is a question to a model as values. Its concrete types are the five of this package, always by value. It is kept as JSON
// beside the reply, since the numbers in a reply mean nothing without it.
type Task interface {
	// Step is the name of the task: "distill", "judge", "questions", "brief" or "coverage".
	Step() string
	// Request renders the task. Equal tasks give equal requests.
	Request() Request
}

// Request is one question to a model.
type Request struct {
	Task      Task            `json:"task"`   // what System and Prompt were rendered from; an engine without a language model answers from it
	System    string          `json:"system"` // the rules
	Prompt    string          `json:"prompt"` // the material
	Schema    json.RawMessage `json:"schema"` // JSON Schema of the answer
	MaxTokens int             `json:"max_tokens"`
	Priority  Priority        `json:"priority"`
}

// Reply is one answer, as the engine gave it.
type Reply struct {
	Text         string        `json:"text"` // verbatim; may hold fences, thoughts or several objects
	Engine       string        `json:"engine"`
	Model        string        `json:"model"`
	Digest       string        `json:"digest"` // Info.ChatDigest at the time
	PromptTokens int           `json:"prompt_tokens"`
	ReplyTokens  int           `json:"reply_tokens"`
	Duration     time.Duration `json:"duration"` // nanoseconds in JSON
}
