package up

import (
	"net"
	"strconv"

	"github.com/factstream/factstream/jetstream/embedded"
)

// freeAddress returns address, with a port that is free in place of port 0. An address that is taken is an error that
// names who has it, where the system tells.
func freeAddress(address string) (string, error) {
	free, err := freeAddresses(address, 1)
	if err != nil {
		return "", err
	}
	return free[0], nil
}

// freeAddresses returns n addresses of one host: address and those with the ports after its port, or any free ones for port 0.
func freeAddresses(address string, n int) (free []string, err error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, err
	}
	if port == 0 {
		ports, err := embedded.AnyPorts(host, n)
		if err != nil {
			return nil, portProblem(address, "FACTSTREAM_HTTP", err)
		}
		for _, port := range ports {
			free = append(free, net.JoinHostPort(host, strconv.Itoa(port)))
		}
		return free, nil
	}
	for i := range n {
		wanted := port + i
		at := net.JoinHostPort(host, strconv.Itoa(wanted))
		listener, err := net.Listen("tcp", at)
		if err != nil {
			return nil, portProblem(at, "FACTSTREAM_HTTP", err)
		}
		defer listener.Close() //nolint:errcheck // it was only tried
		free = append(free, at)
	}
	return free, nil
}

// holds are addresses that nobody else finds free meanwhile.
type holds struct{ listeners []net.Listener }

func (h *holds) take(address string) error {
	listener, err := net.Listen("tcp", address)
	if err == nil {
		h.listeners = append(h.listeners, listener)
	}
	return err
}

func (h *holds) release() {
	for _, listener := range h.listeners {
		_ = listener.Close()
	}
}

// portOf is the port of an address that has a number for it.
func portOf(address string) int {
	_, text, _ := net.SplitHostPort(address)
	port, _ := strconv.Atoi(text)
	return port
}
