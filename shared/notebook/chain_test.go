package notebook_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/factstream/factstream/jetstream/bustest"
	"github.com/factstream/factstream/jetstream/topology"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

// budgets are commands each of which leads to one event and none of which is like another.
func budget(n int) notebook.Command {
	return notebook.Configure{Changes: event.ThreadConfigured{Budget: &n}}
}

func TestAChainStoresItsEventsOneBehindTheOther(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t)
	p := open(t, srv)
	thread := create(t, p, 500)
	chain := p.appender.Chain(thread)
	for i := range 5 {
		require.NoError(t, chain.Append(t.Context(), budget(600+i), notebook.Origin{Seed: fmt.Sprint("step", i)}))
	}
	n, err := chain.Stored(t.Context())
	require.NoError(t, err)
	require.Equal(t, 5, n)
	p.tail.View(thread, func(th *notebook.Thread) { require.Equal(t, 604, th.Ledger.Budget) })
	require.ErrorIs(t, chain.Append(t.Context(), budget(1), notebook.Origin{}), notebook.ErrOneByOne, "it has ended")

	again := p.appender.Chain(thread)
	require.ErrorIs(t, again.Append(t.Context(), budget(604), notebook.Origin{Seed: "step4"}), notebook.ErrOneByOne, "it is stored already")
}

func TestAChainTakesOneEventOfACommandThatIsNotRefused(t *testing.T) {
	t.Parallel()
	srv, _, _ := bustest.Start(t)
	p := open(t, srv)
	thread := create(t, p, 500)
	for name, cmd := range map[string]notebook.Command{
		"none":    notebook.Settle{ClosingStep: notebook.ClosingStep{Cycle: 7, N: 0}},
		"refused": notebook.RequestRun{Run: "run1", Mode: "no mode", Access: live},
		"invalid": notebook.RequestRun{Run: "no token", Access: live},
	} {
		chain := p.appender.Chain(thread)
		require.NoError(t, chain.Append(t.Context(), budget(700), notebook.Origin{Seed: name}), name)
		require.ErrorIs(t, chain.Append(t.Context(), cmd, notebook.Origin{Seed: name + "2"}), notebook.ErrOneByOne, name)
		n, err := chain.Stored(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, n, name)
		_, err = p.append(t, thread, budget(500))
		require.NoError(t, err)
	}
}

// What another wrote comes between two events of a chain: the second is not stored, though it was sent, and nor is what follows it.
func TestAChainEndsWhereAnothersEventCameBetween(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]func(mine string) string{
		"of the same thread": func(mine string) string { return mine },
		"of another thread":  func(string) string { return "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv, _, _ := bustest.Start(t)
			a, b := open(t, srv), open(t, srv)
			thread := create(t, a, 500)
			elsewhere := other(thread)
			if elsewhere == "" {
				elsewhere = create(t, a, 500)
			}
			for _, p := range []process{a, b} {
				_, err := p.tail.CatchUp(t.Context())
				require.NoError(t, err)
			}
			chain := a.appender.Chain(thread)
			require.NoError(t, chain.Append(t.Context(), budget(600), notebook.Origin{Seed: "step1"}))
			// The first is on the stream before the other is decided.
			require.NoError(t, b.tail.Until(t.Context(), thread, func(th *notebook.Thread) bool { return th.Ledger.Budget == 600 }))
			_, err := b.append(t, elsewhere, notebook.Pause{})
			require.NoError(t, err)
			require.NoError(t, chain.Append(t.Context(), budget(601), notebook.Origin{Seed: "step2"}))
			require.NoError(t, chain.Append(t.Context(), budget(602), notebook.Origin{Seed: "step3"}))
			n, err := chain.Stored(t.Context())
			require.NoError(t, err)
			require.Equal(t, 1, n)
			_, err = a.tail.CatchUp(t.Context())
			require.NoError(t, err)
			a.tail.View(thread, func(th *notebook.Thread) { require.Equal(t, 600, th.Ledger.Budget) })
			require.ErrorIs(t, a.appender.Chain(thread).Append(t.Context(), budget(601), notebook.Origin{}), notebook.ErrOneByOne, "for a while none is begun")
		})
	}
}

// Many chains and single appends on few threads: whatever becomes of a chain, what is stored of it is its first events, each directly
// behind the one before, and every event of every thread was decided on the one before it.
func TestChainsAmongManyWritersKeepEveryThreadInOrder(t *testing.T) {
	t.Parallel()
	srv, _, js := bustest.Start(t)
	var threads []string
	maker := open(t, srv)
	for range 2 {
		threads = append(threads, create(t, maker, 1))
	}
	var mu sync.Mutex
	stored := map[string][]int{} // by thread: budgets that a writer was told are stored
	tell := func(thread string, values ...int) {
		mu.Lock()
		defer mu.Unlock()
		stored[thread] = append(stored[thread], values...)
	}
	var wg sync.WaitGroup
	var whole, cut int
	for w := range 4 {
		p := open(t, srv)
		p.appender.WithoutPause()
		wg.Go(func() {
			for i := range 40 {
				thread := threads[rand.N(len(threads))]
				value := 1_000_000*(w+1) + 100*i
				chain := p.appender.Chain(thread)
				sent := 0
				for k := range 3 {
					if chain.Append(t.Context(), budget(value+k), notebook.Origin{Seed: fmt.Sprint(value + k)}) != nil {
						break
					}
					sent++
				}
				n, err := chain.Stored(t.Context())
				if err != nil || n > sent {
					t.Errorf("%d of %d stored: %v", n, sent, err)
					return
				}
				mu.Lock()
				if sent == 3 && n == 3 {
					whole++
				} else if sent > n {
					cut++
				}
				mu.Unlock()
				for k := range n {
					tell(thread, value+k)
				}
				for k := n; k < 3; k++ {
					if _, err := p.append(t, thread, budget(value+k)); err != nil {
						t.Error(err)
						return
					}
					tell(thread, value+k)
				}
			}
		})
	}
	wg.Wait()
	require.Positive(t, whole)
	require.Positive(t, cut)
	_, err := maker.tail.CatchUp(t.Context())
	require.NoError(t, err)
	stream, err := js.Stream(t.Context(), topology.Notebook)
	require.NoError(t, err)
	info, err := stream.Info(t.Context())
	require.NoError(t, err)
	have := map[string]map[int]int{}
	for seq := uint64(1); seq <= info.State.LastSeq; seq++ {
		m, err := stream.GetMsg(t.Context(), seq)
		require.NoError(t, err)
		e, err := event.Parse(m.Subject, m.Data)
		require.NoError(t, err)
		if d, ok := e.Data.(event.ThreadConfigured); ok {
			if have[e.Thread] == nil {
				have[e.Thread] = map[int]int{}
			}
			have[e.Thread][*d.Budget]++
		}
	}
	for _, thread := range threads {
		require.Len(t, have[thread], len(stored[thread]), "nothing but what was told is stored")
		for _, v := range stored[thread] {
			require.Equal(t, 1, have[thread][v], "%d is stored once", v)
		}
	}
}
