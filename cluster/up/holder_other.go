//go:build !linux

package up

// portHolder cannot tell here.
func portHolder(int) string { return "" }
