// Package extractive answers the notebook's tasks by rules, without a language model and without a network.
//
// Sentences with a citation become facts as they stand, or with the sentence that they lean on; one that joins whole clauses becomes a
// fact for each, with the pages that its own marks name. Two statements are judged by their shared words, figures, dates, units,
// negations and opposites; hashed words and letters stand in for vectors; questions, briefs and topics are made of the texts that the
// task brings. The same task always gives the same answer. Whatever it writes carries the engine's name, since it understands nothing:
// it makes the first run work on any machine, and tests repeatable.
//
// How well it judges is measured in measured_test.go, on labelled pairs that were written before the rules; the figures stand in
// testdata/README.md.
package extractive

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/factstream/factstream/shared/model"
)

// Engine implements model.Model. It has no state: one value may serve any number of goroutines.
type Engine struct{}

// New returns the engine.
func New() Engine { return Engine{} }

var _ model.Direct = Engine{}

// edition changes with every change of the rules that may change an answer; it is part of the digest.
const edition = "5"

// Info never fails. The digests cover the edition of the rules and the word lists.
func (Engine) Info(context.Context) (model.Info, error) {
	return info(), nil
}

var info = sync.OnceValue(func() model.Info {
	rules, vectors := "rules-"+edition, fmt.Sprintf("ngrams-%d", Dimension)
	return model.Info{
		Engine:    model.EngineExtractive,
		ChatModel: rules, ChatDigest: digest(),
		EmbedModel: vectors, EmbedDigest: digest(),
		Dimension:   Dimension,
		Floor:       Floor,
		FloorReason: floorReason,
		Installed:   []string{rules, vectors},
	}
})

var digest = sync.OnceValue(func() string {
	h := sha256.New()
	fmt.Fprintf(h, "extractive %s %d\n", edition, Dimension)
	err := fs.WalkDir(lexiconFiles, "lexicon", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := lexiconFiles.ReadFile(path)
		h.Write(data)
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("extractive: %v", err)) // embedded: cannot be missing
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
})

// Generate answers req.Task; the prompt and the schema are for language models and not read. The reply is one JSON object of the
// task's reply type. A task of another type is model.ErrRefused; otherwise the only error is the cause of ctx.
func (e Engine) Generate(ctx context.Context, req model.Request) (model.Reply, error) {
	answer, reply, err := e.Answer(ctx, req.Task)
	if err != nil {
		return reply, err
	}
	data, err := json.Marshal(answer)
	if err != nil {
		return model.Reply{}, fmt.Errorf("write the answer to %s: %w", req.Task.Step(), err)
	}
	reply.Text = string(data)
	return reply, nil
}

// Answer is Generate without the JSON.
func (Engine) Answer(ctx context.Context, task model.Task) (answer any, reply model.Reply, err error) {
	if ctx.Err() != nil {
		return nil, model.Reply{}, context.Cause(ctx)
	}
	started := time.Now()
	switch task := task.(type) {
	case model.DistillTask:
		answer = distill(task)
	case model.JudgeTask:
		relation, reason, both := judged(task.Elder.Text, task.Newer.Text)
		verdict := model.JudgeReply{Relation: string(relation), Reason: reason}
		if relation == model.Distinct {
			if why, ok := both.tellsOfTheSame(task.Elder.Text, task.Newer.Text); ok {
				verdict.Related, verdict.Reason = true, why
			}
		}
		answer = verdict
	case model.QuestionsTask:
		answer = plan(task)
	case model.BriefTask:
		answer = brief(task)
	case model.CoverageTask:
		answer = cover(task)
	default:
		return nil, model.Reply{}, fmt.Errorf("%w: the extractive engine knows no task %T", model.ErrRefused, task)
	}
	return answer, model.Reply{Engine: model.EngineExtractive, Model: info().ChatModel, Digest: digest(), Duration: time.Since(started)}, nil
}
