//go:build threeservers

package readers_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func init() { grounds["three servers"] = cluster }

func cluster(t *testing.T) ground {
	routes := make([]string, 3)
	for i := range routes {
		routes[i] = "nats-route://" + freeAddress(t)
	}
	urls := make([]string, len(routes))
	for i, own := range routes {
		urls[i] = run(t, fmt.Sprintf("server_name: n%d\ncluster {name: c, listen: %q, routes: [%s]}\n", i, strings.TrimPrefix(own, "nats-route://"), strings.Join(routes, ", ")))
	}
	return outside(t, len(urls), urls...)
}

func freeAddress(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
