package bench

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheFileSystemIsTheInnermost(t *testing.T) {
	t.Parallel()
	const mounts = `22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
30 22 0:25 / /tmp rw shared:9 - tmpfs tmpfs rw
31 22 0:26 / /home rw - btrfs /dev/sdb1 rw
`
	for dir, want := range map[string]string{"/": "ext4", "/tmp": "tmpfs", "/tmp/a/b": "tmpfs", "/tmpfs": "ext4", "/home/x": "btrfs"} {
		require.Equal(t, want, fileSystem(mounts, dir), dir)
	}
}

func TestThisMachineIsNamed(t *testing.T) {
	t.Parallel()
	m := thisMachine(t.TempDir())
	require.NotEqual(t, unknown, m.Kernel)
	require.NotEqual(t, unknown, m.Disk)
	require.GreaterOrEqual(t, m.Load, 0.0)
	require.Contains(t, m.String(), m.Kernel)
}

func TestMemoryOfThisProcess(t *testing.T) {
	t.Parallel()
	pss, err := proportional(os.Getpid())
	require.NoError(t, err)
	most, err := peak(os.Getpid())
	require.NoError(t, err)
	require.Greater(t, pss, int64(1<<20))
	require.Greater(t, most, int64(1<<20))
	own, err := family(os.Getpid())
	require.NoError(t, err)
	require.Contains(t, own, "bench.test")
}
