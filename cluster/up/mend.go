package up

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/factstream/factstream/jetstream/embedded"
	"github.com/factstream/factstream/shared/config"
)

// look is how often the store is looked at.
const look = 2 * time.Second

// store is where a server keeps what it has.
type store struct {
	dir    string
	free   func(dir string) (int64, error) // bytes of its disk
	broken func() bool                     // it takes no writes
}

// mendable says that the store takes no writes and that opening it again helps: its disk was full and has room.
func (s store) mendable() bool {
	free, err := s.free(s.dir)
	return err == nil && free >= leastFree && s.broken()
}

// watch opens the store again after the disk was full, for as long as the bus is open: a stream that could not be written
// once takes nothing any more, leases and answers of paid calls included, and so it would stay until somebody restarts
// everything. The services wait and connect again by themselves.
func (b *bus) watch(ctx context.Context, cfg config.Config, log zerolog.Logger) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // it goes on while the services save what they have
	done := make(chan struct{})
	b.mended = func() { cancel(); <-done }
	go func() {
		defer close(done)
		ticks := time.NewTicker(look)
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
			}
			if (store{cfg.Data, embedded.DiskFree, b.broken}).mendable() {
				if err := b.reopen(ctx, cfg, log); err != nil && ctx.Err() == nil {
					log.Error().Err(err).Msg("the store could not be opened again, trying again")
				}
			}
		}
	}()
}

// broken says that the server is to be started again: its store takes no writes, or the last try failed.
func (b *bus) broken() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.server == nil || b.server.Broken()
}

// reopen stops the server and starts it again where it was. What lives in memory is gone with it and is declared anew.
func (b *bus) reopen(ctx context.Context, cfg config.Config, log zerolog.Logger) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	log.Warn().Msg("the disk was full and has room again: the store is opened again, so that it takes writes")
	if b.server != nil {
		b.server.Shutdown()
		b.server = nil
	}
	u, err := url.Parse(b.at)
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		return err
	}
	server, err := embedded.Start(ctx, embedded.Options{Dir: cfg.Data, Port: port, Logger: log})
	if err != nil {
		return err
	}
	if err := b.declare(ctx, cfg, log); err != nil {
		server.Shutdown()
		return err
	}
	b.server = server
	return nil
}
