// Package callers is shared by the adapters. It makes the context of a request carry the locks that the
// caller holds.
package callers

import (
	"context"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/fence"
)

// maxLocks is how many locks of a caller count. Each costs an acquisition a comparison, and a place in the
// registration of a wait.
const maxLocks = 32

// Context returns a context that is derived from ctx and carries the locks of a trusted caller, given the
// values that it has sent under fence.Key. called is false, and the context ctx itself, if there are none,
// or if one of them cannot be parsed: a request is not refused because of them.
func Context(ctx context.Context, values []string) (with context.Context, called bool) {
	if len(values) == 0 {
		return ctx, false
	}
	all, err := fence.ParseValues(values, "")
	if err != nil {
		return ctx, false
	}
	var locks []zklock.CallerLock
	for _, s := range all[:min(len(all), maxLocks)] {
		locks = append(locks, zklock.CallerLock{Name: s.Name, Mode: s.Mode, Token: s.Token})
	}
	return zklock.ContextWithCallerLocks(ctx, locks...), true
}
