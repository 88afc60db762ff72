package memdriver_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// open is the access list of almost every znode in these tests.
var open = driver.OpenACL(driver.PermAll)

// bubble runs a test in virtual time on an ensemble with a tick of one second.
func bubble(t *testing.T, run func(t *testing.T, e *memdriver.Ensemble), opts ...memdriver.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(append([]memdriver.Option{memdriver.WithTickTime(time.Second)}, opts...)...)
		defer e.Close()
		run(t, e)
	})
}

func connect(t *testing.T, c driver.Connector, timeout time.Duration) driver.Session {
	t.Helper()
	s, err := c.Connect(t.Context(), timeout)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func create(t *testing.T, s driver.Session, path string, mode driver.Mode) string {
	t.Helper()
	created, err := s.Create(t.Context(), path, nil, mode, open)
	if err != nil {
		t.Fatal(err)
	}
	return created
}

func want(t *testing.T, err, sentinel error, what string) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Fatalf("%s: %v, want %v", what, err, sentinel)
	}
}

func has(t *testing.T, s driver.Session, path string) bool {
	t.Helper()
	_, err := s.Get(t.Context(), path)
	if err != nil && !errors.Is(err, driver.ErrNoNode) {
		t.Fatal(err)
	}
	return err == nil
}

// pass lets virtual time pass, and waits until everything that is due has happened.
func pass(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

func state(s driver.Session) driver.State {
	st, _ := s.State()
	return st
}
