package zklock_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// A question makes no root. The first acquisition does.
func TestQuestionsWriteNothing(t *testing.T) {
	for name, ask := range map[string]func(*zklock.Client, *testing.T) error{
		"Deadlocks":  func(c *zklock.Client, t *testing.T) error { _, err := c.Deadlocks(t.Context()); return err },
		"Contenders": func(c *zklock.Client, t *testing.T) error { _, err := c.Contenders(t.Context(), "x"); return err },
		"Locks": func(c *zklock.Client, t *testing.T) (err error) {
			for _, err = range c.Locks(t.Context(), "") {
			}
			return err
		},
		"Watch": func(c *zklock.Client, t *testing.T) (err error) {
			for _, err = range c.Watch(t.Context(), "x") {
				break
			}
			return err
		},
		"Healthy": func(c *zklock.Client, _ *testing.T) error {
			_ = c.Healthy()
			time.Sleep(time.Second)
			return c.Healthy()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := memdriver.New()
				c := connect(t, e.Connector(), nil)
				if err := ask(c, t); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if strings.Contains(e.Dump(), "zklock") {
					t.Errorf("%s has written:\n%s", name, e.Dump())
				}
				e.Expire(e.Sessions()[0])
				time.Sleep(time.Minute)
				_ = ask(c, t)
				time.Sleep(time.Minute)
				if n := c.Stats().SessionsLost; n != 1 {
					t.Errorf("%d sessions were lost, want the one that has expired: a session needs no root", n)
				}
				mustRelease(t, mustLock(t)(c.Mutex("x").Acquire(t.Context())))
			})
		})
	}
}
