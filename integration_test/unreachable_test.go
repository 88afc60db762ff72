package integration_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ports"
	"github.com/zklock/go-zklock/zklock"
)

// TestPortWithoutAnAnswerIsReported: servers that are down, or have no quorum, may come up. So
// a call fails only after connect_timeout. Its error then names the address and the symptom.
func TestPortWithoutAnAnswerIsReported(t *testing.T) {
	t.Parallel()
	const limit = 2 * time.Second
	web := httptest.NewServer(http.NotFoundHandler()) // waits for the rest of the line
	t.Cleanup(web.Close)
	for _, c := range []struct {
		name, addr string
		says       []string
	}{
		{"refuses", ports.Refusing(t), []string{"refused"}},
		{"hangs up", answering(t, ""), []string{"not a ZooKeeper server", "quorum"}},
		{"says nothing", web.Listener.Addr().String(), []string{"connected, but got no ZooKeeper answer"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			client := dial(t, c.addr, quick("connect_timeout", limit.String()))
			knowsThat(t, client, c.says...)
			for verb, call := range calls(client) {
				began := time.Now()
				err := call(within(t))
				if !errors.Is(err, zklock.ErrUnavailable) {
					t.Fatalf("%s: %v, want ErrUnavailable", verb, err)
				}
				if d, least := time.Since(began), leastWait(verb, limit); d < least || d > limit+atOnce {
					t.Errorf("%s: failed after %v, want from %v to connect_timeout=%v", verb, d, least, limit)
				}
				saysAll(t, err, append(c.says, c.addr))
			}
		})
	}
}

// TestCallerInAHurryGetsTheReason: a caller whose context ends before connect_timeout gets an
// error with the symptoms so far.
func TestCallerInAHurryGetsTheReason(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections, and sends nothing
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	for _, c := range []struct{ addr, says string }{
		{ports.Refusing(t), "refused"},
		{silent.Addr().String(), "connected, but got no ZooKeeper answer"},
	} {
		for verb := range calls(nil) {
			t.Run(verb+"/"+c.says, func(t *testing.T) {
				t.Parallel()
				client := dial(t, c.addr, quick("connect_timeout", "1m"))
				knowsThat(t, client, c.says)
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				err := calls(client)[verb](ctx)
				if !errors.Is(err, zklock.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v, want ErrUnavailable and the context's error", err)
				}
				saysAll(t, err, []string{c.addr, c.says})
			})
		}
	}
}

// knowsThat waits until a client that has no session yet has tried its server, and says that of it. A
// busy machine may take longer for that than connect_timeout. From then on the client knows.
func knowsThat(t *testing.T, c *zklock.Client, says ...string) {
	t.Helper()
	eventually(t, "an attempt that failed", func() bool {
		err := c.Healthy() // begins to open a session, if no attempt is under way
		return err != nil && !slices.ContainsFunc(says, func(word string) bool { return !strings.Contains(err.Error(), word) })
	})
}

// calls returns the calls that may be a client's first contact with its ensemble.
func calls(c *zklock.Client) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Ping": c.Ping,
		"Acquire": func(ctx context.Context) error {
			_, err := c.Mutex("name").Acquire(ctx)
			return err
		},
		"TryAcquire": func(ctx context.Context) error {
			_, err := c.Mutex("name").TryAcquire(ctx)
			return err
		},
	}
}

// leastWait returns how long one of calls goes on at least without a session: for connect_timeout, but
// a try fails at once if there has been none for a while.
func leastWait(verb string, connectTimeout time.Duration) time.Duration {
	if verb == "TryAcquire" {
		return 0
	}
	return connectTimeout
}
