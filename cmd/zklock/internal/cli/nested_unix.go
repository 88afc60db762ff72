//go:build unix

package cli

import (
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/zklock/go-zklock/cmd/zklock/internal/run"
	"github.com/zklock/go-zklock/zklock"
)

// heldVariable is the environment variable by which a run says what it holds to the runs that its command starts. Without
// it, "zklock run a -- zklock run b" would be a holder of a that waits for nothing, and a wait of another process. Its
// first line has the wrapper's process id, and where its locks are; each other line has the token, the mode and the
// name of a lock, the innermost first.
const heldVariable = "ZKLOCK_HELD"

// maxOuter is how many locks of outer runs count: each costs a wait a place in its registration.
const maxOuter = 32

// locality says where the locks of a client are. The same name elsewhere is another lock.
func locality(cfg zklock.Config) string {
	return cfg.Scheme + "://" + strings.Join(cfg.Hosts, ",") + cfg.Root
}

// outerLocks returns the locks of the runs that this one is nested in. They stay until this one has ended, if this process
// is one of those for which the outer run waits, and which it ends: a daemon, or a job of at, may have the
// variable for long after its run.
func (a *app) outerLocks(cfg zklock.Config) (outer []zklock.CallerLock) {
	first, rest, _ := strings.Cut(a.getenv(heldVariable), "\n")
	pid, where, _ := strings.Cut(first, " ")
	if wrapper, err := strconv.Atoi(pid); err != nil || where != locality(cfg) || !run.IsUnder(wrapper) {
		return nil
	}
	for line := range strings.SplitSeq(rest, "\n") {
		fields := strings.Fields(line)
		if len(fields) != 3 || len(outer) == maxOuter {
			return outer
		}
		token, err := zklock.ParseToken(fields[0])
		name, unescaped := url.QueryUnescape(fields[2])
		if err != nil || unescaped != nil {
			return outer
		}
		mode := zklock.Exclusive
		if fields[1] == zklock.Shared.String() {
			mode = zklock.Shared
		}
		outer = append(outer, zklock.CallerLock{Name: name, Mode: mode, Token: token})
	}
	return outer
}

// held returns the value of heldVariable for the command; "" if the variable is to be left out. A wait for a permit waits for no
// certain holder. A candidate runs a service, whose jobs do not keep it from its work.
func (w *wrapper) held(lock *zklock.Lock) string {
	if w.flags.candidate || w.flags.permits > 0 || w.helpers == nil {
		return ""
	}
	held := w.outer
	for i, mode := range lock.Modes() {
		held = append([]zklock.CallerLock{{Name: lock.Names()[i], Mode: mode, Token: lock.Token()}}, held...)
	}
	text := fmt.Sprintf("%d %s", os.Getpid(), w.where)
	for _, l := range held {
		text += fmt.Sprintf("\n%v %v %s", l.Token, l.Mode, url.QueryEscape(l.Name))
	}
	return text
}
