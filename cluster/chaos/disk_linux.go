package chaos

import (
	"fmt"
	"os"
	"syscall"
)

func mount(dir string, size int64) error {
	return syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", size))
}

// unmount takes the file system from dir at once; it is gone when nobody has a file of it open any more.
func unmount(dir string) error { return syscall.Unmount(dir, syscall.MNT_DETACH) }

func allocate(file *os.File, from, size int64) error {
	if size <= 0 {
		return nil
	}
	return syscall.Fallocate(int(file.Fd()), 0, from, size)
}
