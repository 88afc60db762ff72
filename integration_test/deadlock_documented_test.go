package integration_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// TestDocumentedDeadlock: the message of a deadlock in docs/guarantees.md is the error that a caller gets, and the
// line of the log is the one that the document names.
func TestDocumentedDeadlock(t *testing.T) {
	text, err := os.ReadFile("../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	message := regexp.MustCompile(`(?m)^    (deadlock: .*)$`).FindStringSubmatch(string(text))
	logged := regexp.MustCompile("\\| the log of the client [^|]*\\| `([^`]*)`").FindStringSubmatch(string(text))
	if message == nil || logged == nil {
		t.Fatal("the document has no message, or no line of the log")
	}
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New()
		defer e.Close()
		var log bytes.Buffer
		parties := []struct {
			zklock.Identity
			label, holds, wants string
		}{
			{zklock.Identity{Host: "web-1", PID: 77}, "POST /merge", "customers/7", "orders/42"},
			{zklock.Identity{Host: "web-3", PID: 812}, "POST /move", "orders/42", "customers/7"},
		}
		var failed []error
		var mu sync.Mutex
		var all sync.WaitGroup
		for _, p := range parties {
			c, err := zklock.OpenConnector(e.Connector(), zklock.WithIdentity(p.Identity), zklock.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			all.Go(func() {
				err := zklock.Do(t.Context(), c.Mutex(p.holds), func(ctx context.Context, _ *zklock.Lock) error {
					time.Sleep(time.Second)
					return zklock.Do(ctx, c.Mutex(p.wants), func(context.Context, *zklock.Lock) error { return nil }, zklock.WithLabel(p.label))
				})
				if err != nil {
					mu.Lock()
					defer mu.Unlock()
					failed = append(failed, err)
				}
			})
			time.Sleep(100 * time.Millisecond) // the second wait is registered last
		}
		all.Wait()
		var d *zklock.DeadlockError
		if len(failed) != 1 || !errors.As(failed[0], &d) || d.Error() != message[1] {
			t.Errorf("%v, want one error, with the documented message\n%s", failed, message[1])
		}
		synctest.Wait() // for the log
		if line := log.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, "level=WARN") || !strings.Contains(line, logged[1]) || !strings.Contains(line, fmt.Sprintf("deadlock=%q", message[1])) {
			t.Errorf("the log is\n%s", line)
		}
	})
}
