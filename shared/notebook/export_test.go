package notebook

// WithoutPause has an appender begin chains whatever became of the last one.
func (a *Appender) WithoutPause() *Appender {
	a.chainPause = -1
	return a
}
