package embedded

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// ErrNoPort: of a whole range no port is free.
var ErrNoPort = errors.New("no port is free")

// highestPort is the last that servers are given. Above it lie those that the system
// hands out to connections: one could take the port of a server that is just being
// started again.
const highestPort = 32_767

// FreePorts finds n ports of host on which nothing listens, the first ones at or
// above from, which must be below 32,768. Whoever wants them must take them soon.
func FreePorts(host string, from, n int) (ports []int, err error) {
	for port := from; port <= highestPort && len(ports) < n; port++ {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("look for a free port of %s: %w", host, err)
		}
		defer listener.Close() //nolint:errcheck // it was only tried
		ports = append(ports, port)
	}
	if len(ports) < n {
		return nil, fmt.Errorf("%w from %d to %d of %s", ErrNoPort, from, highestPort, host)
	}
	return ports, nil
}

// AnyPorts finds n ports of host on which nothing listens, from a place by chance on:
// who looks at the same time finds others.
func AnyPorts(host string, n int) ([]int, error) {
	const lowest, span = 10_000, 20_000
	return FreePorts(host, lowest+rand.IntN(span), n) //nolint:gosec // nobody has to be kept from guessing it
}
