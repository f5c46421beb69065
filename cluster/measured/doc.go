// Package measured holds tests that measure parts of several services together, which no service may do itself.
package measured
