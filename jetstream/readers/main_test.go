package readers_test

import (
	"os"
	"testing"

	"github.com/factstream/factstream/jetstream/bustest"
)

func TestMain(m *testing.M) {
	bustest.ServeIfAsked()
	os.Exit(m.Run())
}
