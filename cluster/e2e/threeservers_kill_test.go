//go:build threeservers

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/cluster/chaos"
	"github.com/factstream/factstream/fixtures/standin"
	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/event"
)

// longestStop is how long a step may stand still because somebody died: until its message comes again, or its lease is free, as the
// defaults have it, and one election.
const longestStop = max(topology.DefaultAckWait, topology.DefaultLeaseTTL) + 10*time.Second

// recovering bounds the wait for everything after a kill; what is asserted of it is measured.
const recovering = 5 * time.Minute

// three is a notebook on three servers, with two of every service and the times of the defaults.
func three(t *testing.T) *field {
	t.Helper()
	return openWith(t, chaos.Layout{Cluster: true,
		Workers: map[string]int{"researcher": 2, "distiller": 2, "judge": 2, "briefer": 2, chaos.Gateway: 2},
		Env:     []string{"MODEL_ENGINE=extractive", "LOG_LEVEL=debug", "ACK_WAIT=" + topology.DefaultAckWait.String(), "LEASE_TTL=" + topology.DefaultLeaseTTL.String()}})
}

func TestWhoeverIsKilledNothingIsLostNothingIsPaidTwiceAndNothingStopsForLong(t *testing.T) {
	f := three(t)
	require.NoError(t, f.provider.Set(standin.Answer{Piece: 256, Delay: 50 * time.Millisecond})) // a call takes more than a second
	watch := f.Watch()
	t.Cleanup(func() { require.NoError(t, watch.Close()) })
	load := f.busy(watch, 7)
	worst := time.Duration(0)

	kill := func(what string, choose func() (name string, release func())) {
		t.Helper()
		load.atWork()
		name, release := choose()
		starts, killed := f.Starts(name), time.Now()
		require.True(t, f.Kill(name), name)
		release()
		eventually(t, name+" is started again", func() bool { return f.Starts(name) > starts && f.PID(name) != 0 })
		load.awaitAllOf(killed)
		f.awaitReplicas()
		long, where := stops(watch.Events(), killed)
		worst = max(worst, long)
		t.Logf("%s (%s): the longest stop is %.1f s, %s; all that was under way was done after %.1f s", what, name, long.Seconds(), where, time.Since(killed).Seconds())
		require.LessOrEqual(t, long, longestStop, "%s: %s", what, where)
	}
	none := func() {}

	kill("a researcher in its paid call", func() (string, func()) { return f.calling(watch), none })
	for program, durable := range map[string]string{"distiller": topology.Distil, "judge": topology.Judge, "briefer": topology.Brief} {
		kill("a "+program+" with messages in hand", func() (string, func()) { return f.holding(program, durable) })
	}
	kill("a gateway", func() (string, func()) { return chaos.Gateway, none })
	kill("the other gateway", func() (string, func()) { return chaos.Gateway + "-2", none })
	kill("the server that leads NOTEBOOK", func() (string, func()) { return f.leads(topology.Notebook), none })
	kill("the server that leads the leases", func() (string, func()) { return f.leads("KV_" + topology.BucketLeases), none })
	kill("the server that leads all servers", func() (string, func()) { return f.leadsAll(), none })
	for _, server := range f.Servers {
		kill("a server", func() (string, func()) { return server, none })
	}

	opened := load.stop()
	eventuallyIn(t, recovering, "all is calm", func() error { return watch.Calm(t.Context()) })
	audit, err := f.Audit(t.Context(), watch, f.provider.Calls())
	require.NoError(t, err)
	require.Empty(t, audit.Findings)
	require.Empty(t, audit.Rebought)
	completed := 0
	for _, e := range watch.Events() {
		if e.Kind() == "run.completed" {
			completed++
		}
	}
	require.Equal(t, opened, completed, "every run that was asked for has been done")
	require.Empty(t, f.Unasked())
	t.Logf("%d runs, %d calls of which %d whole; the longest stop of all is %.1f s, and %s may be", completed, f.provider.Stats().Calls, f.provider.Stats().Whole, worst.Seconds(), longestStop)
}

// stops finds the longest time, after a kill, in which something stood still: the whole notebook, or its paid calls, of which there was
// always one to make, or a step from what it waited for, or from the kill if that was later. How long a run waits for its turn among
// others is no stop.
func stops(events []event.Event, killed time.Time) (longest time.Duration, where string) {
	note := func(from, to time.Time, what string) {
		if from.Before(killed) {
			from = killed
		}
		if long := to.Sub(from); long > longest {
			longest, where = long, what
		}
	}
	steps := map[string]string{ // outcome: what it waited for
		"run.completed": "attempt.started", "facts.distilled": "run.completed",
		"contradictions.found": "facts.distilled", "thread.settled": "contradictions.found",
	}
	calls := []string{"attempt.started", "attempt.failed", "run.completed"}
	last, before, call := map[string]time.Time{}, killed, killed
	for _, e := range events {
		about := func(kind string) string { return kind + " of " + e.Thread } // one run each
		if trigger, is := steps[e.Kind()]; is && e.Stored.After(killed) {
			if from := last[about(trigger)]; !from.IsZero() {
				note(from, e.Stored, trigger+" to "+about(e.Kind()))
			}
		}
		last[about(e.Kind())] = e.Stored
		if slices.Contains(calls, e.Kind()) && e.Stored.After(call) {
			note(call, e.Stored, "the paid calls, until "+about(e.Kind()))
			call = e.Stored
		}
		if e.Stored.After(before) {
			note(before, e.Stored, "the whole notebook")
			before = e.Stored
		}
	}
	return longest, where
}

// load keeps threads at work, each with one run.
type load struct {
	f     *field
	watch *chaos.Watch
	end   context.CancelFunc
	done  sync.WaitGroup

	mu     sync.Mutex
	opened map[string]time.Time
}

// busy keeps n threads unsettled until the load is stopped. What it asks for it asks of both gateways in turn, until one has taken it.
func (f *field) busy(watch *chaos.Watch, n int) *load {
	ctx, cancel := context.WithCancel(f.t.Context())
	l := &load{f: f, watch: watch, end: cancel, opened: map[string]time.Time{}}
	var number atomic.Int64
	for range n {
		l.done.Go(func() {
			for ctx.Err() == nil {
				key := fmt.Sprintf("load-%d", number.Add(1))
				var th thread
				if err := json.Unmarshal(f.anywhere(http.StatusCreated, "/threads", key+"-thread", map[string]any{"question": "What of " + key + "?", "auto": false}), &th); err != nil {
					f.t.Errorf("a thread: %v", err)
					return
				}
				f.anywhere(http.StatusAccepted, "/threads/"+th.ID+"/runs", key+"-run", map[string]any{})
				l.mu.Lock()
				l.opened[th.ID] = time.Now()
				l.mu.Unlock()
				for ctx.Err() == nil && !l.settled(th.ID) {
					select {
					case <-ctx.Done():
					case <-time.After(50 * time.Millisecond):
					}
				}
			}
		})
	}
	f.t.Cleanup(func() { l.stop() })
	return l
}

// gateway is the n-th way in, from 0.
func (f *field) gateway(n int) *api { return &api{t: f.t, url: f.URLs[n]} }

// anywhere sends a write to the gateways in turn, under one key, until one of them has taken it.
func (f *field) anywhere(status int, path, key string, body any) []byte {
	deadline := time.Now().Add(recovering)
	for i := 0; ; i++ {
		got, text, err := f.gateway(i%len(f.URLs)).try(http.MethodPost, base+path, body, "Idempotency-Key", key)
		// The other gateway may not have heard of the thread yet.
		if err == nil && got == status {
			return text
		}
		if time.Now().After(deadline) {
			f.t.Errorf("%s is not taken: %d %s %v", path, got, text, err)
			return []byte("{}")
		}
		<-time.After(50 * time.Millisecond)
	}
}

func (l *load) settled(thread string) bool {
	return slices.ContainsFunc(l.watch.Events(), func(e event.Event) bool { return e.Kind() == "thread.settled" && e.Thread == thread })
}

// atWork waits until calls are made.
func (l *load) atWork() {
	l.f.t.Helper()
	calls := l.f.provider.Stats().Calls
	eventuallyIn(l.f.t, recovering, "calls are made", func() error {
		if l.f.provider.Stats().Calls < calls+2 {
			return errNotYet
		}
		return nil
	})
}

// awaitAllOf waits until everything that was under way at a time has been done.
func (l *load) awaitAllOf(at time.Time) {
	l.f.t.Helper()
	eventuallyIn(l.f.t, recovering, "what was under way is done", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		for thread, opened := range l.opened {
			if opened.Before(at) && !l.settled(thread) {
				return fmt.Errorf("%w: %s", errNotYet, thread)
			}
		}
		return nil
	})
}

// stop asks for nothing more and gives how many runs there were.
func (l *load) stop() int {
	l.end()
	l.done.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.opened)
}

// calling gives the researcher whose call is open and has brought something.
func (f *field) calling(watch *chaos.Watch) (name string) {
	f.t.Helper()
	eventuallyIn(f.t, recovering, "a researcher is in its call", func() error {
		open := f.provider.Calls()
		if len(open) == 0 || open[len(open)-1].Outcome != standin.Open || open[len(open)-1].Sent < 500 {
			return errNotYet
		}
		holder := ""
		for _, e := range watch.Events() {
			if started, is := e.Data.(event.AttemptStarted); is {
				holder = started.Holder
			}
		}
		for _, candidate := range f.Names {
			if strings.HasPrefix(candidate, "researcher") && strings.HasSuffix(holder, ":"+strconv.Itoa(f.PID(candidate))) {
				name = candidate
				return nil
			}
		}
		return errNotYet
	})
	return name
}

// slots is how many messages a process of a worker has in hand at most.
const slots = 4

// holding stops both processes of a program until messages are in their hands, and gives the one that is to be killed; release lets
// the other go on.
func (f *field) holding(program, durable string) (name string, release func()) {
	f.t.Helper()
	both := []string{program, program + "-2"}
	for _, one := range both {
		require.True(f.t, f.Stop(one), one)
	}
	eventuallyIn(f.t, recovering, "both have messages in hand", func() error {
		ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
		defer cancel()
		consumer, err := f.JS.Consumer(ctx, topology.Notebook, durable)
		if err == nil && consumer.CachedInfo().NumAckPending <= slots {
			err = errNotYet
		}
		return err
	})
	return both[0], func() { f.Continue(both[1]) }
}

// leads gives the process of the server that leads a stream.
func (f *field) leads(stream string) (name string) {
	f.t.Helper()
	eventuallyIn(f.t, recovering, stream+" has a leader", func() error {
		ctx, cancel := context.WithTimeout(f.t.Context(), 5*time.Second)
		defer cancel()
		s, err := f.JS.Stream(ctx, stream)
		if err == nil {
			name, err = f.serverCalled(s.CachedInfo().Cluster.Leader)
		}
		return err
	})
	return name
}

// leadsAll gives the process of the server that leads the others, as they log it.
func (f *field) leadsAll() (name string) {
	f.t.Helper()
	eventuallyIn(f.t, recovering, "the servers have a leader", func() error {
		leader, since := "", ""
		for i, server := range f.Servers {
			file, err := os.Open(filepath.Join(f.LogDir(), server+".log"))
			if err != nil {
				return err
			}
			defer file.Close() //nolint:errcheck // only read
			for lines := bufio.NewScanner(file); lines.Scan(); {
				var line struct{ Time, Message string }
				if json.Unmarshal(lines.Bytes(), &line) != nil || line.Time < since {
					continue
				}
				if line.Message == "Self is new JetStream cluster metadata leader" {
					leader, since = embedded.ServerName(i+1), line.Time
				} else if other, is := strings.CutPrefix(line.Message, "JetStream cluster new metadata leader: "); is {
					leader, since = strings.Split(other, "/")[0], line.Time
				}
			}
		}
		var err error
		name, err = f.serverCalled(leader)
		return err
	})
	return name
}

func (f *field) serverCalled(name string) (process string, err error) {
	for i, server := range f.Servers {
		if embedded.ServerName(i+1) == name {
			return server, nil
		}
	}
	return "", fmt.Errorf("%w: %q is no server", errNotYet, name)
}

// awaitReplicas waits until every server has all of NOTEBOOK and of the leases again.
func (f *field) awaitReplicas() { awaitReplicas(f.t, f.JS) }

func (c *cluster) awaitReplicas() { awaitReplicas(c.t, c.jetStream()) }

func awaitReplicas(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	eventuallyIn(t, recovering, "every server has everything again", func() error {
		for _, name := range []string{topology.Notebook, "KV_" + topology.BucketLeases} {
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			stream, err := js.Stream(ctx, name)
			cancel()
			if err != nil {
				return err
			}
			current := 0
			for _, replica := range stream.CachedInfo().Cluster.Replicas {
				if replica.Current && !replica.Offline {
					current++
				}
			}
			if current != embedded.Servers-1 {
				return fmt.Errorf("%w: %s", errNotYet, name)
			}
		}
		return nil
	})
}

// errNotYet is what a condition says that does not hold yet.
var errNotYet = errors.New("not yet")

// eventuallyIn waits for something that takes long, and says at the end what it waited for.
func eventuallyIn(t *testing.T, within time.Duration, what string, holds func() error) {
	t.Helper()
	for deadline := time.Now().Add(within); ; {
		err := holds()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not come about: %s: %v", what, err)
		}
		<-time.After(50 * time.Millisecond)
	}
}
