package zklock

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
	"github.com/zklock/go-zklock/zklock/internal/session"
)

// Defaults of the core's URL keys; docs/urls.md lists them.
const (
	defaultRoot           = "/zklock"
	defaultSessionTimeout = 10 * time.Second
	defaultTickTime       = 3 * time.Second // ZooKeeper's sample configuration has 2s, its code 3s
	defaultConnectTimeout = 10 * time.Second
	defaultPoolSessions   = 2
	defaultHandoverLimit  = 16
	defaultHandoverTime   = 100 * time.Millisecond
	defaultKeepMax        = 1000
)

// maxPoolSessions is more than a client needs: each session can carry any number of
// locks, and each costs the ensemble a heartbeat.
const maxPoolSessions = 1000

// maxDuration is more than any setting needs, and small enough that sums and
// multiples do not overflow.
const maxDuration = 10 * 365 * 24 * time.Hour

// config has all settings of a Client. newClient gets it checked.
type config struct {
	rules

	acl    aclMode
	hooks  Hooks
	params url.Values // from WithParams, applied after the URL's keys
}

// aclMode says which clients may use the znodes that zklock creates.
type aclMode string

const (
	aclAuto    aclMode = ""        // creator if the URL has a user, else open
	aclOpen    aclMode = "open"    // all clients
	aclCreator aclMode = "creator" // clients with the creator's identity
)

func defaultConfig() config {
	host, _ := os.Hostname() // "" if the system does not know one
	return config{rules: rules{
		Settings: place.Settings{
			Settings: session.Settings{
				SessionTimeout:  defaultSessionTimeout,
				TickTime:        defaultTickTime,
				ConnectTimeout:  defaultConnectTimeout,
				PoolMaxSessions: defaultPoolSessions,
				Jitter:          session.Jitter,
				Logger:          defaultLogger,
			},
			KeepAfter:  place.KeepAfter,
			Host:       host,
			PID:        os.Getpid(),
			CreateRoot: true,
			Dialect:    queue.Default,
		},
		handoverLimit: defaultHandoverLimit,
		handoverTime:  defaultHandoverTime,
		keepMax:       defaultKeepMax,
	}}
}

// coreKeys has the URL keys of the core, each with a function that sets it.
var coreKeys = map[string]func(c *config, v string) error{
	"session_timeout":   durationKey(time.Millisecond, func(c *config) *time.Duration { return &c.SessionTimeout }),
	"tick_time":         durationKey(time.Millisecond, func(c *config) *time.Duration { return &c.TickTime }),
	"connect_timeout":   durationKey(time.Millisecond, func(c *config) *time.Duration { return &c.ConnectTimeout }),
	"loss_delay":        durationKey(0, func(c *config) *time.Duration { return &c.LossDelay }),
	"pool_max_sessions": intKey(1, maxPoolSessions, func(c *config) *int { return &c.PoolMaxSessions }),
	"pool_max_lifetime": durationKey(0, func(c *config) *time.Duration { return &c.PoolMaxLifetime }),
	"handover_limit":    intKey(0, math.MaxInt32, func(c *config) *int { return &c.handoverLimit }),
	"handover_time":     durationKey(0, func(c *config) *time.Duration { return &c.handoverTime }),
	"keep":              durationKey(0, func(c *config) *time.Duration { return &c.keep }),
	"keep_max":          intKey(1, math.MaxInt32, func(c *config) *int { return &c.keepMax }),
	"max_waiters":       intKey(0, math.MaxInt32, func(c *config) *int { return &c.maxWaiters }),
	"max_contenders":    intKey(0, math.MaxInt32, func(c *config) *int { return &c.MaxContenders }),
	"max_names":         intKey(0, math.MaxInt32, func(c *config) *int { return &c.maxNames }),
	"create_root": func(c *config, v string) error {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("want true or false")
		}
		c.CreateRoot = b
		return nil
	},
	"dialect": func(c *config, v string) error {
		d, err := queue.ParseDialect(v)
		if err == nil {
			c.Dialect = d
		}
		return err
	},
	"acl": func(c *config, v string) error {
		switch m := aclMode(v); m {
		case aclOpen, aclCreator:
			c.acl = m
			return nil
		}
		return fmt.Errorf("want %s or %s", aclCreator, aclOpen)
	},
}

func durationKey(least time.Duration, field func(*config) *time.Duration) func(*config, string) error {
	return func(c *config, v string) error {
		d, err := time.ParseDuration(v)
		if err != nil {
			return fmt.Errorf("want a duration such as 10s or 1500ms")
		}
		if d < least || d > maxDuration {
			return fmt.Errorf("want from %v to %v", least, maxDuration)
		}
		*field(c) = d
		return nil
	}
}

func intKey(least, most int, field func(*config) *int) func(*config, string) error {
	return func(c *config, v string) error {
		n, err := strconv.Atoi(v)
		if err != nil {
			return fmt.Errorf("want a number")
		}
		if n < least || n > most {
			return fmt.Errorf("want a number from %d to %d", least, most)
		}
		*field(c) = n
		return nil
	}
}

// applyParams sets the core's keys from params and returns the others. Each key
// must have one value and be known to the core or be among driverKeys.
func (c *config) applyParams(params url.Values, driverKeys []string) (url.Values, error) {
	rest := make(url.Values)
	for _, key := range slices.Sorted(maps.Keys(params)) {
		values := params[key]
		if len(values) != 1 {
			return nil, fmt.Errorf("key %s is given %d times, want it once", shownKey(key), len(values))
		}
		set, core := coreKeys[key]
		switch {
		case core:
			// The error does not show the value: the reader can look it up, and it
			// may be a secret that was put in the wrong place.
			if err := set(c, values[0]); err != nil {
				return nil, fmt.Errorf("key %q: %w", key, err)
			}
		case slices.Contains(driverKeys, key):
			rest[key] = values
		default:
			known := slices.Sorted(maps.Keys(coreKeys))
			known = slices.Compact(slices.Sorted(slices.Values(append(known, driverKeys...))))
			return nil, fmt.Errorf("unknown key %s (known: %s)", shownKey(key), strings.Join(known, ", "))
		}
	}
	return rest, nil
}

// shownKey returns how a key appears in an error: quoted if it looks like a key. If it
// does not, the error does not show it, because a misplaced character in the URL may
// have made a password a key.
func shownKey(key string) string {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_-.", r)
	}) {
		return "(not shown: it is empty, or has characters that no key has)"
	}
	return strconv.Quote(key)
}

// check checks the root, and the settings that depend on each other.
func (c *config) check() error {
	if err := checkRoot(c.Root); err != nil {
		return err
	}
	if err := c.CheckTimeout(c.SessionTimeout, "session_timeout"); err != nil {
		return fmt.Errorf("key \"session_timeout\": %w", err)
	}
	if c.keep > 0 && (c.handoverLimit == 0 || c.handoverTime == 0) {
		return errors.New("key \"keep\" needs hand-over: raise handover_limit and handover_time above 0, or leave keep out")
	}
	return nil
}

// checkRoot refuses a root that is not a plain absolute path below "/".
func checkRoot(root string) error {
	if !strings.HasPrefix(root, "/") || root == "/" {
		return fmt.Errorf("root %q: want an absolute path below \"/\", such as %s", root, defaultRoot)
	}
	for segment := range strings.SplitSeq(root[1:], "/") {
		if err := queue.CheckSegment(segment); err != nil {
			return fmt.Errorf("root %q: %w", root, err)
		}
		if strings.Contains(segment, "%") {
			return fmt.Errorf("root %q: percent signs are not allowed, because they are not decoded", root)
		}
		if r, ok := queue.RefusedRune(segment); ok {
			return fmt.Errorf("root %q: ZooKeeper does not allow the character %U", root, r)
		}
	}
	if root == "/zookeeper" || strings.HasPrefix(root, "/zookeeper/") {
		return fmt.Errorf("root %q: /zookeeper belongs to the servers: use another root", root)
	}
	return nil
}

// useHooks sets the hooks that sessions call.
func (c *config) useHooks() {
	if f := c.hooks.Operation; f != nil {
		c.Operation = func(ctx context.Context, op session.Operation) (context.Context, func(error)) {
			return f(ctx, OperationEvent(op))
		}
	}
	if f := c.hooks.Session; f != nil {
		c.Changed = func(s session.State) { f(SessionEvent(s)) }
	}
}
