//go:build threeservers

package readers_test

import (
	"testing"

	"github.com/factstream/factstream/jetstream/bustest"
)

func init() { grounds["three servers"] = cluster }

func cluster(t *testing.T) ground {
	c := bustest.StartCluster(t, func(listen, store string) string { return configuration(t, listen, store) })
	g := ground{}
	for i := range bustest.Servers {
		g.services, g.readers = append(g.services, c.ServiceURL(i)), append(g.readers, c.ReaderURL(i))
	}
	return g.open(t)
}
