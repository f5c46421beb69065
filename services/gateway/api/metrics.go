package api

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/factstream/factstream/jetstream/dead"
	"github.com/factstream/factstream/shared/event"
	"github.com/factstream/factstream/shared/notebook"
)

// stuckAfter is how long a thread whose next step is due may be silent before it counts as stuck: longer than any stage may take (20 minutes).
const stuckAfter = 25 * time.Minute

// leaseKeys are the leases whose holders are shown.
var leaseKeys = []string{"provider." + event.Tabstack, "model", "embed"}

var (
	lagDesc      = prometheus.NewDesc("factstream_projection_lag_events", "Sequences that notebook.db is behind the stream.", nil, nil)
	positionDesc = prometheus.NewDesc("factstream_projection_position", "Last stream sequence in notebook.db.", nil, nil)
	deadDesc     = prometheus.NewDesc("factstream_dead_letters", "Messages that workers could not decode and nobody has put back or passed.", nil, nil)
	badDesc      = prometheus.NewDesc("factstream_bad_events", "Events that could not be applied and nobody has passed.", nil, nil)
	leaseDesc    = prometheus.NewDesc("factstream_lease_held", "1 for a lease that is held, by whom; 0, without a holder, for one that is free.", []string{"lease", "holder"}, nil)
	threadsDesc  = prometheus.NewDesc("factstream_threads", "Threads by what is shown as their status.", []string{"status"}, nil)
	stuckDesc    = prometheus.NewDesc("factstream_threads_stuck", "Threads whose next step is due and of which nothing has been heard for 25 minutes.", nil, nil)
	spentDesc    = prometheus.NewDesc("factstream_credits_spent_total", "Credits spent by all threads, deleted ones included.", nil, nil)
	reservedDesc = prometheus.NewDesc("factstream_credits_reserved", "Credits held for runs that have not ended.", nil, nil)
	budgetDesc   = prometheus.NewDesc("factstream_credits_budget", "Credits that the threads may spend, spent ones included.", nil, nil)
	dollarsDesc  = prometheus.NewDesc("factstream_dollars_spent_total", "Dollars that providers reported, of deleted threads too.", nil, nil)
)

func (s *Server) registerMetrics() { s.Metrics.Registry.MustRegister(&collector{s}) }

// collector looks at the notebook when it is asked, so that there is no second account of anything.
type collector struct{ s *Server }

func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{lagDesc, positionDesc, deadDesc, badDesc, leaseDesc, threadsDesc, stuckDesc, spentDesc, reservedDesc, budgetDesc, dollarsDesc} {
		out <- d
	}
}

func (c *collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), readyWait)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	counter := func(d *prometheus.Desc, v float64) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v)
	}
	gauge(positionDesc, float64(c.s.Projection.Position()))
	if lag, err := c.s.Projection.Lag(ctx); err == nil {
		gauge(lagDesc, float64(lag))
	}
	if n, err := dead.Count(ctx, c.s.JS); err == nil {
		gauge(deadDesc, float64(n))
	}
	if _, n, err := c.s.badEvents(ctx, 1); err == nil {
		gauge(badDesc, float64(n))
	}
	for _, key := range leaseKeys {
		switch holder, held, err := c.s.Leases.Holder(ctx, key); {
		case err != nil:
		case held:
			gauge(leaseDesc, 1, key, holder.Name)
		default:
			gauge(leaseDesc, 0, key, "")
		}
	}
	sums := c.s.sums()
	for _, status := range []string{notebook.New, notebook.Running, notebook.Paused, notebook.Idle, notebook.Complete} {
		gauge(threadsDesc, float64(sums.byStatus[status]), status)
	}
	gauge(stuckDesc, float64(sums.stuck))
	counter(spentDesc, float64(sums.spent))
	gauge(reservedDesc, float64(sums.reserved))
	gauge(budgetDesc, float64(sums.budget))
	counter(dollarsDesc, sums.dollars)
}

type sums struct {
	byStatus                       map[string]int
	stuck, spent, reserved, budget int
	dollars                        float64
}

func (s *Server) sums() sums {
	v := sums{byStatus: map[string]int{}}
	now := s.Now()
	s.Projection.ViewAll(func(n *notebook.Notebook) {
		for _, t := range n.Threads() {
			v.spent += t.Ledger.Spent
			v.dollars += t.Ledger.Dollars
			if !t.Exists() {
				continue
			}
			status, _ := t.Status()
			v.byStatus[status]++
			v.reserved += t.Ledger.Held()
			v.budget += t.Ledger.Budget
			if isStuck(t, now) {
				v.stuck++
			}
		}
	})
	return v
}

// isStuck says that a step is due and nobody seems to do it. A run that waits for the provider's lease is not stuck: that takes as long as it takes.
func isStuck(t *notebook.Thread, now time.Time) bool {
	if now.Sub(t.Updated) < stuckAfter {
		return false
	}
	for _, step := range notebook.Next(t) {
		if step.Stage != event.StageRun && now.After(step.NotBefore) {
			return true
		}
	}
	return false
}
