package telemetry

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// The outcomes of a step that every service counts alike.
const (
	OutcomeDone    = "done"    // its event was appended
	OutcomeSkipped = "skipped" // nothing to do: the outcome was there already, or the thread is gone
	OutcomeLater   = "later"   // to be tried again
	OutcomeFailed  = "failed"  // given up, which is an outcome of its own
)

// Metrics is the registry of one process, with the counters that all services share. A service registers its own
// metrics with Registry.
type Metrics struct {
	Registry *prometheus.Registry

	steps   *prometheus.CounterVec
	seconds *prometheus.HistogramVec
}

// NewMetrics makes the metrics of the service so called. Nothing is registered globally, so a test may make many.
func NewMetrics(service string) *Metrics {
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		steps: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "factstream_steps_total", Help: "Steps of the chain that ended, by stage and outcome.",
		}, []string{"stage", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "factstream_step_seconds", Help: "How long steps of the chain took, by stage.",
			Buckets: []float64{.005, .02, .1, .5, 2, 10, 60, 300, 1200}, // 1200 s: the longest a stage may take
		}, []string{"stage"}),
	}
	m.Registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	prometheus.WrapRegistererWith(prometheus.Labels{"service": service}, m.Registry).MustRegister(m.steps, m.seconds)
	return m
}

// Step counts one step of stage that ended as outcome after it took d.
func (m *Metrics) Step(stage, outcome string, d time.Duration) {
	m.steps.WithLabelValues(stage, outcome).Inc()
	m.seconds.WithLabelValues(stage).Observe(d.Seconds())
}

// Handler serves the registry in the Prometheus text format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{Registry: m.Registry})
}
