package bustest

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Leaks is what goleak.VerifyTestMain takes for a package whose tests use a bus: tests after which goroutines have all the time of a busy machine to
// end, and the one that the client library leaves behind when a connection closes while it starts. It calls ServeIfAsked.
func Leaks(m *testing.M) (goleak.TestingM, goleak.Option) {
	ServeIfAsked()
	return patient{m}, leftBehind
}

var leftBehind = goleak.IgnoreTopFunction("github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect")

type patient struct{ tests *testing.M }

func (p patient) Run() int {
	code := p.tests.Run()
	for began := time.Now(); code == 0 && goleak.Find(leftBehind) != nil && time.Since(began) < Patience; {
		time.Sleep(10 * time.Millisecond)
	}
	return code
}
