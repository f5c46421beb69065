package up

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// portHolder names the process that listens on the TCP port, as far as this user may know; else it is empty.
func portHolder(port int) string {
	socket := ""
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if socket = listener(table, port); socket != "" {
			break
		}
	}
	if socket == "" {
		return ""
	}
	descriptors, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, descriptor := range descriptors {
		if target, err := os.Readlink(descriptor); err == nil && target == socket {
			pid := strings.Split(descriptor, "/")[2]
			name, _ := os.ReadFile("/proc/" + pid + "/comm")
			return fmt.Sprintf("process %s (%s)", pid, strings.TrimSpace(string(name)))
		}
	}
	return ""
}

// listener returns the socket that listens on port, as it stands among a process's descriptors.
func listener(table string, port int) string {
	file, err := os.Open(table)
	if err != nil {
		return ""
	}
	defer file.Close() //nolint:errcheck // only read
	const local, state, inode, listening = 1, 3, 9, "0A"
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) <= inode || fields[state] != listening {
			continue
		}
		_, hex, _ := strings.Cut(fields[local], ":")
		if n, err := strconv.ParseUint(hex, 16, 16); err == nil && int(n) == port {
			return "socket:[" + fields[inode] + "]"
		}
	}
	return ""
}
