package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

// Library is a lock library, as a worker uses it. Its methods are called concurrently.
type Library interface {
	// Acquire waits for a lock. It returns an error when ctx ends, or when Close is called. Holding(ctx) has
	// the locks that its caller holds meanwhile, and Request(ctx) what else the caller asks for.
	Acquire(ctx context.Context, name string) (Hold, error)

	// Close ends the library's connections. Calls that wait must return then.
	Close() error
}

// Hold is a lock that was granted. One goroutine calls its methods.
type Hold interface {
	// Token is the fencing token; "": the library has none.
	Token() string

	// Held is what the library believes at this moment. It does not block.
	Held() bool

	// Lost is closed when the library reports that the lock is lost; nil: the library has no signal.
	Lost() <-chan struct{}

	// Release gives the lock back.
	Release(ctx context.Context) error
}

// requestKey is the context key of the request.
type requestKey struct{}

// Request returns the request that the caller of Acquire serves: whether it asks for a shared lock, or for a permit.
func Request(ctx context.Context) Message {
	m, _ := ctx.Value(requestKey{}).(Message)
	return m
}

// holdingKey is the context key of the holds of a client.
type holdingKey struct{}

// Holding returns what the caller of Acquire holds while it waits, the newest first. A library that finds deadlocks may need it;
// others have no use for it.
func Holding(ctx context.Context) []Hold {
	holds, _ := ctx.Value(holdingKey{}).([]Hold)
	return holds
}

// The names of the environment variables with a worker's settings.
const (
	ServersEnv = "LOCKTEST_SERVERS" // addresses with commas between them
	TTLEnv     = "LOCKTEST_TTL"     // a duration, such as 4s
)

// Settings are what locktest asks of a worker's client.
type Settings struct {
	// Servers are the addresses of the servers. Each worker has its own: they lead to the servers
	// through locktest, so that it can cut them.
	Servers []string

	// TTL is the time after which the locks of a dead client must be free: the timeout of a session, or
	// the duration of a lease.
	TTL time.Duration
}

// settingsFromEnv reads the settings from the environment.
func settingsFromEnv() (Settings, error) {
	s := Settings{Servers: strings.Split(os.Getenv(ServersEnv), ",")}
	if s.Servers[0] == "" {
		return s, fmt.Errorf("%s is empty: set it to the servers' addresses", ServersEnv)
	}
	ttl, err := time.ParseDuration(os.Getenv(TTLEnv))
	if err != nil || ttl <= 0 {
		return s, fmt.Errorf("%s=%s is not a duration above 0, such as 4s", TTLEnv, os.Getenv(TTLEnv))
	}
	s.TTL = ttl
	return s, nil
}

// Main is the function main of a worker: it opens a library and serves requests until the end of the
// standard input.
func Main(open func(ctx context.Context, s Settings) (Library, error)) {
	signal.Ignore(os.Interrupt) // a terminal sends it to the workers, too, and locktest ends them
	if err := run(open); err != nil {
		fmt.Fprintf(os.Stderr, "worker: %v\n", err)
		os.Exit(1)
	}
}

func run(open func(context.Context, Settings) (Library, error)) error {
	s, err := settingsFromEnv()
	if err != nil {
		return err
	}
	library, err := open(context.Background(), s)
	if err != nil {
		return fmt.Errorf("open the library: %w", err)
	}
	return Serve(library, os.Stdin, os.Stdout)
}

// errEnd is the cause of the end of an acquisition at the end of the input.
var errEnd = errors.New("the end of the input")
