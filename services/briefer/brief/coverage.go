package brief

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/factstream/factstream/shared/engine"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/notebook"
	"github.com/factstream/factstream/shared/text"
)

// cover brings the map of topics up to date: facts that count no longer leave it, and those that are on it stay where they
// are; only the others are put before the model, as many at a time as one call takes. A fact that the model puts nowhere is
// asked about again at the next closing.
func (b *Briefer) cover(ctx context.Context, c closing, m *engine.Engine) (notebook.Command, error) {
	var chart chart
	if err := b.read(c, func(t *notebook.Thread, _ *notebook.Cycle) { chart = chartOf(t) }); err != nil {
		return nil, err
	}
	out := event.CoverageMapped{Engine: m.Info.Engine, Model: m.Info.ChatModel}
	done := 0
	for part := range slices.Chunk(chart.unassigned, model.MaxCoverageFacts) {
		m.Say(ctx, fmt.Sprintf("facts %d to %d of %d", done+1, done+len(part), len(chart.unassigned)))
		covered, err := model.MapCoverage(ctx, m.Call(partName(part)), chart.task(part))
		if err != nil {
			return nil, err
		}
		chart.assign(covered.Assignments)
		out.Engine, out.Model = covered.Engine, covered.Model
		done += len(part)
	}
	out.Topics = chart.topics()
	return notebook.MapCoverage{ClosingStep: c.step(), Coverage: out}, nil
}

// partName names a call by the facts that it is about: a fact that was dismissed between two deliveries moves the others, and
// the reply about other facts must not be taken for this one.
func partName(facts []model.CoverageFact) string {
	refs := make([]string, len(facts))
	for i, f := range facts {
		refs[i] = f.Ref
	}
	return text.ID(refs...)
}

// chart is a map of topics under work.
type chart struct {
	thread     string
	question   string
	order      []string // topic ids
	named      map[string]string
	members    map[string][]string // fact ids by topic
	unassigned []model.CoverageFact
	waiting    map[string]bool // ids of the unassigned facts that got no topic so far
}

// chartOf reads the last map and what is not on it. It is pure.
func chartOf(t *notebook.Thread) chart {
	c := chart{thread: t.ID, question: t.Question, named: map[string]string{}, members: map[string][]string{}, waiting: map[string]bool{}}
	assigned := map[string]bool{}
	if t.Coverage != nil {
		for _, topic := range t.Coverage.Topics {
			c.add(topic.ID, topic.Name)
			for _, id := range topic.Facts {
				if f := t.Facts[id]; f != nil && f.Active() && !assigned[id] {
					assigned[id] = true
					c.members[topic.ID] = append(c.members[topic.ID], id)
				}
			}
		}
	}
	for _, id := range t.FactIDs {
		if f := t.Facts[id]; f.Active() && !assigned[id] {
			c.unassigned = append(c.unassigned, model.CoverageFact{Ref: id, Statement: f.Statement, Tags: slices.Clone(f.Tags)})
			c.waiting[id] = true
		}
	}
	return c
}

func (c *chart) add(id, name string) {
	if _, known := c.named[id]; !known {
		c.named[id] = name
		c.order = append(c.order, id)
	}
}

// task numbers facts and topics. With more topics than a prompt shows, the model chooses among the largest.
func (c *chart) task(facts []model.CoverageFact) model.CoverageTask {
	task := model.CoverageTask{Question: c.question, Facts: facts}
	for i := range task.Facts {
		task.Facts[i].N = i + 1
	}
	largest := slices.Clone(c.order)
	slices.SortStableFunc(largest, func(a, b string) int { return cmp.Compare(len(c.members[b]), len(c.members[a])) })
	for i, id := range largest[:min(len(largest), model.MaxCoverageTopics)] {
		task.Topics = append(task.Topics, model.Topic{N: i + 1, Ref: id, Name: c.named[id]})
	}
	return task
}

// assign puts facts to topics. What a reply that was kept earlier says about facts that are not waiting any more is passed.
func (c *chart) assign(assignments []model.Assignment) {
	for _, a := range assignments {
		topic := a.Topic
		if topic == "" {
			topic = topicID(c.thread, a.NewTopic)
			c.add(topic, a.NewTopic)
		}
		if _, known := c.named[topic]; known && c.waiting[a.Fact] {
			delete(c.waiting, a.Fact)
			c.members[topic] = append(c.members[topic], a.Fact)
		}
	}
}

// topicID is the id of a topic in a thread: one that lost all its facts comes back under the same id.
func topicID(thread, name string) string { return text.ID("topic", thread, text.Fingerprint(name)) }

// topics gives the topics that have facts, the oldest topic first.
func (c *chart) topics() []event.Topic {
	topics := []event.Topic{}
	for _, id := range c.order {
		if facts := c.members[id]; len(facts) > 0 {
			topics = append(topics, event.Topic{ID: id, Name: c.named[id], Facts: facts})
		}
	}
	return topics
}
