package up

import (
	"bufio"
	"context"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/factstream/factstream/jetstream/embedded"
)

const (
	// answersWithin is how long a server may take to greet who connects: it does at once, unless it is stopped or hangs.
	answersWithin = 2 * time.Second
	// silentTimes in a row make a server one that does not answer; a start takes less.
	silentTimes = 3
)

// watchServers tells in the log when servers do not answer any more, and when they do again, until ctx ends. A server whose process ends is
// started again and told of by the supervisor; one that hangs, or stands, nobody else would name.
func watchServers(ctx context.Context, members []Member, every time.Duration, log zerolog.Logger) {
	silent := make([]int, len(members))
	var told []string
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
		var asking sync.WaitGroup
		for i, m := range members {
			asking.Go(func() {
				if greets(ctx, net.JoinHostPort(embedded.DefaultHost, strconv.Itoa(m.Port))) {
					silent[i] = 0
				} else {
					silent[i]++
				}
			})
		}
		asking.Wait()
		if ctx.Err() != nil {
			return
		}
		var away []string
		for i, m := range members {
			if silent[i] >= silentTimes || silent[i] > 0 && slices.Contains(told, m.Name()) {
				away = append(away, m.Name())
			}
		}
		if !slices.Equal(away, told) {
			tellAway(log, away, len(members))
			told = away
		}
	}
}

// tellAway says what it means that these servers do not answer; none: that all do again.
func tellAway(log zerolog.Logger, away []string, of int) {
	switch {
	case len(away) == 0:
		log.Warn().Msg("all servers answer again")
	case len(away) <= (of-1)/2:
		log.Warn().Str("servers", strings.Join(away, " ")).Msg("a server does not answer: nothing is lost and everything goes on, but the others must not fail too. If its process is stopped or hangs, end it, and it is started again")
	default:
		log.Error().Str("servers", strings.Join(away, " ")).Msg("most servers do not answer: nothing can be stored, nothing new is bought, and everything waits until more than half of them are there. If a process is stopped or hangs, end it, and it is started again")
	}
}

// greets says whether a NATS server is there and says who it is.
func greets(ctx context.Context, address string) bool {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer connection.Close() //nolint:errcheck // only read
	deadline, _ := ctx.Deadline()
	if connection.SetReadDeadline(deadline) != nil {
		return false
	}
	line, err := bufio.NewReader(connection).ReadString(' ')
	return err == nil && line == "INFO "
}
