package zklock

import (
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Option sets something about a Client, for values that a program has and a
// URL cannot hold. What an operator decides is a key of the URL. Later options
// win over earlier ones, except WithHooks, which adds.
type Option interface{ applyOpen(*config) }

type openOption func(*config)

func (o openOption) applyOpen(c *config) { o(c) }

// WithHooks adds hooks to those given before; see JoinHooks for their order.
func WithHooks(h Hooks) Option {
	return openOption(func(c *config) { c.hooks = JoinHooks(c.hooks, h) })
}

// WithLogger sets where rare events are told: a lock lost, a session replaced,
// clean-up that goes on in the background, foreign nodes among the contenders.
// Nothing of that is logged by default. Neither passwords nor lock names are
// logged. The driver of a URL logs there too, warnings of its own and the
// chatter of its connections at debug level; without this option that goes to
// slog's default logger, as does the warning about a session timeout that the
// servers cut short.
func WithLogger(l *slog.Logger) Option {
	return openOption(func(c *config) {
		if l == nil {
			l = slog.New(slog.DiscardHandler)
		}
		c.Logger, c.DriverLogger = l, l
	})
}

// Identity is what a queue node tells others about the process it stands for.
type Identity struct {
	// Host is the host's name.
	Host string

	// PID is the process id.
	PID int
}

// WithIdentity sets what goes into the data of queue nodes, where others with
// access to the ensemble can read it. Zero fields stay out; so does everything
// without this option.
func WithIdentity(id Identity) Option {
	return openOption(func(c *config) { c.Host, c.PID = id.Host, id.PID })
}

// WithAcquireStacks has every acquisition remember where in the program it was
// asked for. A lock that is dropped without Release is then logged with the
// functions that acquired it. It is for finding such a leak: each acquisition
// takes a microsecond or two longer, and each lock some hundred bytes more.
func WithAcquireStacks() Option {
	return openOption(func(c *config) { c.acquireStacks = true })
}

// WithParams sets URL keys of the core by name, with the same checks as in a
// URL. It is the way to set them with OpenConnector; with Open it overrides the
// URL.
func WithParams(params url.Values) Option {
	return openOption(func(c *config) {
		if c.params == nil {
			c.params = make(url.Values)
		}
		for k, v := range params {
			c.params[k] = v
		}
	})
}

// WithRoot sets the znode below which the client works, instead of the URL's
// path.
func WithRoot(path string) Option {
	return openOption(func(c *config) { c.Root = strings.TrimSuffix(path, "/") })
}

// AcquireOption sets something about one acquisition.
type AcquireOption interface{ applyAcquire(*acquireConfig) }

type acquireOption func(*acquireConfig)

func (o acquireOption) applyAcquire(c *acquireConfig) { o(c) }

// acquireConfig is what AcquireOptions set.
type acquireConfig struct {
	wait       time.Duration // limit on waiting; counts if limited
	limited    bool
	try        bool
	label      string
	reenter    bool
	alone      bool // WithoutHandover
	failFast   bool
	maxWaiters int // 0: no limit of this acquisition's own
}

// WithWait gives up, with ErrNotAcquired, d after the call. Unlike a deadline
// of the context it does not shorten what the context is used for afterwards.
// With d of zero or less, Acquire does what TryAcquire does.
func WithWait(d time.Duration) AcquireOption {
	return acquireOption(func(c *acquireConfig) {
		c.wait, c.limited = d, true
		if d <= 0 {
			c.try = true
		}
	})
}

// WithLabel sets a text that is shown to others by Client.Contenders, such as
// a request id. It is cut at 256 bytes.
func WithLabel(label string) AcquireOption {
	return acquireOption(func(c *acquireConfig) { c.label = queue.Truncate(label, queue.MaxLabel) })
}

// Reenter joins the lock if the context carries it already, instead of failing
// with ErrDeadlock. Each join is a Lock of its own with the same token, or after a
// Downgrade with that of the readers to come; what is held goes back when the last
// of them has been released. Locks that have been released do not count: if another
// goroutine releases the last of them just then, the lock is acquired as without
// Reenter. A reader's lock cannot be joined by a writer; that stays ErrDeadlock.
func Reenter() AcquireOption {
	return acquireOption(func(c *acquireConfig) { c.reenter = true })
}

// WithFailFast fails with ErrOutage, which comes with ErrUnavailable, once the client has
// been without a connection for almost all of connect_timeout. Others wait for as long
// as that themselves, however long the outage has lasted. What the client knows of an
// outage it forgets when it has wanted no session for a second. A caller that waits for
// a holder, or behind another caller of this client that does not fail fast, waits as
// it does without this option.
func WithFailFast() AcquireOption {
	return acquireOption(func(c *acquireConfig) { c.failFast = true })
}

// WithoutHandover gives the acquisition a queue node, and so a token's Zxid, of
// its own. It is not handed a lock by another goroutine of the process, and does
// not share one with other readers. It costs the round trips that these save.
func WithoutHandover() AcquireOption {
	return acquireOption(func(c *acquireConfig) { c.alone = true })
}

// WithMaxWaiters fails with ErrTooManyWaiters, instead of waiting, when n
// goroutines of this client wait for the name already: at once, and without a
// request to the ensemble wherever this process knows that it would have to wait.
// Where only the ensemble can tell, it fails as soon as that has answered. Who gets
// in at once is never refused, beside other readers for example, or with a free
// permit; and neither is a try, which is no waiter.
//
// It sharpens the URL's max_waiters and cannot loosen it. n must be positive; other
// values set no limit.
func WithMaxWaiters(n int) AcquireOption {
	return acquireOption(func(c *acquireConfig) { c.maxWaiters = max(n, 0) })
}

func newAcquireConfig(opts []AcquireOption, try bool) acquireConfig {
	cfg := acquireConfig{try: try}
	for _, o := range opts {
		if o != nil {
			o.applyAcquire(&cfg)
		}
	}
	if try {
		cfg.try = true
	}
	return cfg
}
