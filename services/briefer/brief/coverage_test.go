package brief

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/model"
	"github.com/factstream/factstream/shared/notebook"
)

func TestTopicsKeepTheirIdsAndOnlyNewFactsArePutToTheModel(t *testing.T) {
	t.Parallel()
	s, server := withModel(t)
	assign := func(assignments ...any) map[string]any {
		return map[string]any{event.StageCoverage: map[string]any{"assignments": assignments}}
	}
	newTopic := func(fact int, name string) any { return map[string]any{"fact": fact, "topic": nil, "new_topic": name} }
	topic := func(fact, topic int) any { return map[string]any{"fact": fact, "topic": topic, "new_topic": nil} }

	server.Respond(answering(assign(newTopic(1, "Durability"), newTopic(2, "durability"), newTopic(3, "Cost"))))
	s.start()
	s.tell(nil, nil, rises, falls, costs)
	s.settled(1, 0)
	first := one[event.CoverageMapped](s)
	require.Equal(t, []event.Topic{
		{ID: topicID(thread, "durability"), Name: "Durability", Facts: []string{rises.ID, falls.ID}},
		{ID: topicID(thread, "Cost"), Name: "Cost", Facts: []string{costs.ID}},
	}, first.Topics)

	more, nowhere := fact("A pack costs 100 dollars per kWh in 2030."), fact("Something else altogether.")
	server.Respond(answering(assign(topic(1, 2), topic(2, 99))))
	before := len(server.Chats())
	s.tell(nil, nil, more, nowhere)
	s.settled(2, 0)
	second := last[event.CoverageMapped](s)
	require.Equal(t, []string{costs.ID, more.ID}, second.Topics[1].Facts)
	require.Equal(t, first.Topics[0], second.Topics[0])
	for _, call := range server.Chats()[before:] {
		if stepOf(call) == event.StageCoverage {
			require.NotContains(t, prompt(call), rises.Statement)
			require.Contains(t, prompt(call), "topic 2: Cost")
		}
	}

	t.Log("a fact that got no topic is asked about again")
	before = len(server.Chats())
	server.Respond(answering(assign(newTopic(1, "Else"))))
	s.append(notebook.RetryStage{Stage: event.StageCoverage, Entity: "2"})
	s.settled(2, 1)
	third := last[event.CoverageMapped](s)
	require.Equal(t, []string{nowhere.ID}, third.Topics[2].Facts)

	t.Log("and with nothing to place nobody is asked")
	asked := len(server.Chats())
	s.append(notebook.RetryStage{Stage: event.StageCoverage, Entity: "2"})
	s.settled(2, 2)
	require.Equal(t, third.Topics, last[event.CoverageMapped](s).Topics)
	require.Len(t, server.Chats(), asked)
	require.Len(t, server.Chats()[before:], 1)
}

func TestFactsThatCountNoLongerLeaveTheMap(t *testing.T) {
	t.Parallel()
	th := state(rises, falls, costs)
	th.Coverage = &notebook.Coverage{CoverageMapped: event.CoverageMapped{Topics: []event.Topic{
		{ID: "a", Name: "Durability", Facts: []string{rises.ID, falls.ID, "unknown"}},
		{ID: "b", Name: "Cost", Facts: []string{costs.ID}},
	}}}
	th.Facts[falls.ID].Root = rises.ID
	th.Facts[costs.ID].Removed = true
	c := chartOf(th)
	require.Empty(t, c.unassigned)
	require.Equal(t, []event.Topic{{ID: "a", Name: "Durability", Facts: []string{rises.ID}}}, c.topics())
}

func TestWithManyTopicsTheModelChoosesAmongTheLargest(t *testing.T) {
	t.Parallel()
	facts := many(3*model.MaxCoverageTopics + 1)
	th := state(facts...)
	var topics []event.Topic
	for i := range 2 * model.MaxCoverageTopics {
		topic := event.Topic{ID: fmt.Sprint("topic", i), Name: fmt.Sprint("Topic ", i), Facts: []string{facts[i].ID}}
		if i >= model.MaxCoverageTopics {
			topic.Facts = append(topic.Facts, facts[i+model.MaxCoverageTopics].ID)
		}
		topics = append(topics, topic)
	}
	th.Coverage = &notebook.Coverage{CoverageMapped: event.CoverageMapped{Topics: topics}}
	c := chartOf(th)
	require.Len(t, c.unassigned, 1)
	task := c.task(c.unassigned)
	require.Len(t, task.Topics, model.MaxCoverageTopics)
	require.Equal(t, fmt.Sprint("Topic ", model.MaxCoverageTopics), task.Topics[0].Name)

	t.Log("a new topic of the name of one that was not shown is that one")
	c.assign([]model.Assignment{{Fact: c.unassigned[0].Ref, NewTopic: "Fresh"}, {Fact: "unknown", NewTopic: "Empty"}, {Fact: c.unassigned[0].Ref, Topic: "topic1"}})
	mapped := c.topics()
	require.Len(t, mapped, 2*model.MaxCoverageTopics+1)
	require.Equal(t, event.Topic{ID: topicID(thread, "Fresh"), Name: "Fresh", Facts: []string{c.unassigned[0].Ref}}, mapped[len(mapped)-1])
}

func TestManyNewFactsAreMappedInSeveralCalls(t *testing.T) {
	t.Parallel()
	s, server := withModel(t)
	var all []any
	for n := range model.MaxCoverageFacts {
		all = append(all, map[string]any{"fact": n + 1, "topic": nil, "new_topic": "Everything"})
	}
	server.Respond(answering(map[string]any{event.StageCoverage: map[string]any{"assignments": all}}))
	s.start()
	facts := many(2*model.MaxCoverageFacts + 1)
	s.tell(nil, nil, facts...)
	s.settled(1, 0)
	topics := one[event.CoverageMapped](s).Topics
	require.Len(t, topics, 1)
	require.Len(t, topics[0].Facts, len(facts))
	calls := 0
	for _, call := range server.Chats() {
		if stepOf(call) == event.StageCoverage {
			calls++
		}
	}
	require.Equal(t, 3, calls)
}
