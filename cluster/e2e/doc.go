// Package e2e proves the whole notebook as its users have it: the real programs, started by `factstream up` on an empty directory, asked over
// HTTP, and killed while they work. What stands in for the provider is on this machine.
package e2e
