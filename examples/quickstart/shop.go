package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zklock/go-zklock/zklock/fence"
)

// shop is the database of the shop: one number, the tickets that are left, which
// replicas read and write over HTTP. It does not know of the lock, but it refuses a
// write with a token that is older than one it has seen.
type shop struct {
	url    string
	server *http.Server
	serves sync.WaitGroup
	guard  fence.Guard
	left   atomic.Int64
}

// openShop serves a shop on a free port of this machine.
func openShop() (*shop, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &shop{url: "http://" + listener.Addr().String()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /left", s.get)
	mux.HandleFunc("PUT /left", s.put)
	s.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	s.serves.Go(func() { _ = s.server.Serve(listener) }) // returns when the server is closed
	return s, nil
}

func (s *shop) close() {
	_ = s.server.Close()
	s.serves.Wait()
}

func (s *shop) get(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, s.left.Load()) }

func (s *shop) put(w http.ResponseWriter, r *http.Request) {
	err := s.write(r)
	switch {
	case errors.Is(err, fence.ErrStale):
		http.Error(w, err.Error(), http.StatusPreconditionFailed)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func (s *shop) write(r *http.Request) error {
	body, err := io.ReadAll(io.LimitReader(r.Body, 64))
	if err != nil {
		return err
	}
	left, err := strconv.ParseInt(string(body), 10, 64)
	if err != nil {
		return err
	}
	tokens, err := fence.ParseValues(r.Header.Values(fence.Key), "")
	if err != nil {
		return err
	}
	if len(tokens) == 0 { // a replica that works without a lock
		s.left.Store(left)
		return nil
	}
	return s.guard.Do(tokens, func() error {
		s.left.Store(left)
		return nil
	})
}

// customerOf is a replica's access to the shop's database.
type customerOf string

func (url customerOf) left(ctx context.Context) (int, error) {
	text, err := url.send(ctx, http.MethodGet, "", nil)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(text)
}

// setLeft writes the number of tickets on behalf of the locks whose tokens are given.
// The error matches fence.ErrStale if the shop has seen a newer token.
func (url customerOf) setLeft(ctx context.Context, left int, tokens []fence.Sequencer) error {
	_, err := url.send(ctx, http.MethodPut, strconv.Itoa(left), tokens)
	return err
}

func (url customerOf) send(ctx context.Context, method, body string, tokens []fence.Sequencer) (string, error) {
	req, err := http.NewRequestWithContext(ctx, method, string(url)+"/left", strings.NewReader(body))
	if err != nil {
		return "", err
	}
	for _, token := range tokens {
		req.Header.Add(fence.Key, token.String())
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return "", err
	case resp.StatusCode == http.StatusPreconditionFailed:
		return "", fmt.Errorf("%w: %s", fence.ErrStale, strings.TrimSpace(string(text)))
	case resp.StatusCode != http.StatusOK:
		return "", fmt.Errorf("%s %s: %s: %s", method, req.URL, resp.Status, text)
	}
	return string(text), nil
}
