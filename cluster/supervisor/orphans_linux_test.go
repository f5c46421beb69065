package supervisor

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAKilledSupervisorLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	supervisor := exec.Command(self)
	supervisor.Env = append(os.Environ(), role+"=supervisor")
	stdout, err := supervisor.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, supervisor.Start())
	var pids []int
	scanner := bufio.NewScanner(stdout)
	for len(pids) < 2 && scanner.Scan() {
		pid, err := strconv.Atoi(scanner.Text())
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(pid, 0))
		pids = append(pids, pid)
	}
	require.Len(t, pids, 2)
	require.NoError(t, supervisor.Process.Kill())
	_ = supervisor.Wait()
	for _, pid := range pids {
		require.Eventually(t, func() bool { return gone(pid) }, time.Minute, 5*time.Millisecond)
	}
}

// gone says whether the process has ended; one whose end nobody has collected yet has.
func gone(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}
