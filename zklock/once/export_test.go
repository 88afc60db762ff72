package once

import "time"

// WithClock sets the clock of one process.
func WithClock(now func() time.Time) Option { return option(func(s *settings) { s.now = now }) }
