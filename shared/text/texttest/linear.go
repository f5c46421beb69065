// Package texttest proves of code that reads text that it takes linear time.
package texttest

import (
	"testing"
	"time"
)

// Linear fails the test if run takes more than linear time in size, bytes or whatever it counts. A machine that is busy only ever adds time, so
// that what was fast once is fast, and what was slow is measured until the least times of size and a quarter of it tell: linear is 4, quadratic 16.
func Linear(t testing.TB, what string, size int, run func(size int)) {
	t.Helper()
	timed := func(size int) time.Duration {
		began := time.Now()
		run(size)
		return time.Since(began)
	}
	long, short := timed(size), time.Duration(0)
	for began := time.Now(); long > fast && long > most*short; {
		if short != 0 && time.Since(began) > patience {
			break
		}
		if again := timed(size / 4); short == 0 || again < short {
			short = again
		}
		long = min(long, timed(size))
	}
	if long > fast && long > most*short {
		t.Errorf("%s: %s for %d, %s for a quarter of it", what, long, size, short)
	}
}

const (
	// fast is what quadratic time would be far above on any machine, for the sizes of these tests.
	fast     = time.Second
	most     = 10 // between 4 and 16
	patience = time.Minute
)
