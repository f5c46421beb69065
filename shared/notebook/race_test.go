//go:build race

package notebook

// The race detector makes the fates ten times slower, and they run on one goroutine: it has nothing to find in many of them.
const fates = 500
