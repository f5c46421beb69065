//go:build !linux

package chaos

import (
	"errors"
	"os"
)

func mount(string, int64) error { return errors.ErrUnsupported }

func unmount(string) error { return errors.ErrUnsupported }

func allocate(*os.File, int64, int64) error { return errors.ErrUnsupported }
