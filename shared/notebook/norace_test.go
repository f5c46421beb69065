//go:build !race

package notebook

// fates is how many threads live.
const fates = 10_000
