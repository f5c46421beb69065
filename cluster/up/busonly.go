package up

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rs/zerolog"

	"github.com/factstream/factstream/shared/config"
)

// ErrBusElsewhere: a bus of its own was asked for and NATS_URL names another one.
var ErrBusElsewhere = errors.New("NATS_URL is set: the bus is elsewhere")

// Bus runs the embedded bus without services until ctx ends, for harnesses that end it alone. It prints the address when
// everything is declared; the credentials are in the data directory.
func Bus(ctx context.Context, cfg config.Config, out io.Writer, log zerolog.Logger) error {
	if cfg.NATS.URL.Set() {
		return ErrBusElsewhere
	}
	cfg, err := absolute(cfg)
	if err != nil {
		return err
	}
	bus, err := openBus(ctx, cfg, log)
	if err != nil {
		return err
	}
	defer bus.close()
	if _, err := fmt.Fprintln(out, bus.address()); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
