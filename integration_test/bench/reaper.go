package main

import (
	"context"
	"io"
	"log/slog"
	"net/url"

	"github.com/zklock/go-zklock/internal/sessiondir"
	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

// reaping, with a directory after it, makes a worker one that locks nothing.
const reaping = "reap "

// reap frees the locks of dead processes, as zklock reap --wait DIR does, until the end of the input.
func reap(dir string, in io.Reader) error {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan error, 1)
	go func() {
		_, err := sessiondir.Reap(ctx, dir, true, openEnsemble, slog.Default)
		done <- err
	}()
	_, err := io.Copy(io.Discard, in)
	stop()
	if failed := <-done; failed != nil {
		return failed
	}
	return err
}

func openEnsemble(e sessiondir.Ensemble) (driver.Connector, error) {
	u := driver.URL{Scheme: e.Scheme, Hosts: e.Hosts, User: e.User, Params: make(url.Values)}
	for key, value := range e.Params {
		u.Params.Set(key, value)
	}
	return zkdriver.Driver{}.OpenConnector(u)
}
