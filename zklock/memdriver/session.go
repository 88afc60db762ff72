package memdriver

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/zklock/go-zklock/internal/oneline"
	"github.com/zklock/go-zklock/zklock/driver"
)

var _ driver.Session = (*session)(nil)

// maxRequest is the servers' default jute.maxbuffer, the largest request that a
// server reads. If a request has one byte more, the server cuts the connection.
const maxRequest = 0xfffff

// opError reports which operation failed.
type opError struct {
	op, path string // path is "" for an operation that is not on one
	err      error
}

func (e *opError) Error() string {
	if e.path == "" {
		return "mem: " + e.op + ": " + e.err.Error()
	}
	return "mem: " + e.op + " " + strconv.Quote(e.path) + ": " + e.err.Error()
}

func (e *opError) Unwrap() error { return e.err }

// do executes a request and waits for its outcome, which is then in r.
func (s *session) do(ctx context.Context, op string, r *request) error {
	err := s.call(ctx, r)
	if err == nil {
		return nil
	}
	return &opError{op, r.path, err}
}

func (s *session) call(ctx context.Context, r *request) error {
	if err := ctx.Err(); err != nil {
		return oneline.Join(err, driver.ErrNotSent)
	}
	if r.size() > maxRequest {
		return driver.ErrTooLarge
	}
	s.e.enter()
	if err := s.usable(); err != nil {
		s.e.leave()
		return err
	}
	s.submit(r)
	s.e.drain()
	if r.done {
		s.e.leave()
		return r.outcome
	}
	r.wake = make(chan struct{})
	s.e.leave()
	select {
	case <-r.wake:
	case <-ctx.Done():
		s.e.enter()
		s.withdraw(r, ctx.Err())
		s.e.leave()
	}
	return r.outcome
}

// usable returns the reason why the session accepts no more requests, nil if it
// accepts them.
func (s *session) usable() error {
	switch {
	case s.state == driver.Expired:
		return driver.ErrSessionExpired
	case s.state == driver.Closed:
		return driver.ErrClosed
	}
	return nil
}

// write executes one operation through the log.
func (s *session) write(ctx context.Context, op driver.Op) (driver.OpResult, error) {
	r := newRequest()
	r.kind, r.path = requestWrite, op.Path
	r.one[0] = op
	r.ops, r.results = r.one[:], r.oneR[:]
	err := s.do(ctx, op.Kind.String(), r)
	if err != nil {
		return driver.OpResult{}, err
	}
	result := r.oneR[0]
	r.recycle()
	return result, nil
}

// Create implements [driver.Session].
func (s *session) Create(ctx context.Context, path string, data []byte, mode driver.Mode, acl []driver.ACL) (string, error) {
	if !validCreatePath(path, mode) {
		return "", &opError{"create", path, driver.ErrBadArguments}
	}
	result, err := s.write(ctx, driver.CreateOp(path, data, mode, acl))
	return result.Path, err
}

// Delete implements [driver.Session].
func (s *session) Delete(ctx context.Context, path string, version int32) error {
	if !validPath(path) {
		return &opError{"delete", path, driver.ErrBadArguments}
	}
	_, err := s.write(ctx, driver.DeleteOp(path, version))
	return err
}

// Set implements [driver.Session].
func (s *session) Set(ctx context.Context, path string, data []byte, version int32) (driver.Stat, error) {
	if !validPath(path) {
		return driver.Stat{}, &opError{"set", path, driver.ErrBadArguments}
	}
	result, err := s.write(ctx, driver.SetOp(path, data, version))
	return result.Stat, err
}

// Get implements [driver.Session].
func (s *session) Get(ctx context.Context, path string) (driver.Node, error) {
	if !validPath(path) {
		return driver.Node{}, &opError{"get", path, driver.ErrBadArguments}
	}
	r := newRequest()
	r.kind, r.path = requestGet, path
	if err := s.do(ctx, "get", r); err != nil {
		return driver.Node{}, err
	}
	n := r.node
	r.recycle()
	return n, nil
}

// Children implements [driver.Session].
func (s *session) Children(ctx context.Context, path string) ([]string, driver.Stat, error) {
	if !validPath(path) {
		return nil, driver.Stat{}, &opError{"children", path, driver.ErrBadArguments}
	}
	r := newRequest()
	r.kind, r.path = requestChildren, path
	if err := s.do(ctx, "children", r); err != nil {
		return nil, driver.Stat{}, err
	}
	names, stat := r.names, r.node.Stat
	r.recycle()
	return names, stat, nil
}

// Sync implements [driver.Session].
func (s *session) Sync(ctx context.Context, path string) error {
	if !validPath(path) {
		return &opError{"sync", path, driver.ErrBadArguments}
	}
	r := newRequest()
	r.kind, r.path = requestSync, path
	if err := s.do(ctx, "sync", r); err != nil {
		return err
	}
	r.recycle()
	return nil
}

// Watch implements [driver.Session].
func (s *session) Watch(ctx context.Context, path string) (driver.Node, <-chan driver.Event, error) {
	if !validPath(path) {
		return driver.Node{}, nil, &opError{"watch", path, driver.ErrBadArguments}
	}
	r := newRequest()
	r.kind, r.path = requestWatch, path
	if err := s.do(ctx, "watch", r); err != nil {
		return driver.Node{}, nil, err
	}
	n, events := r.node, r.watch
	r.recycle()
	return n, events, nil
}

// WatchChildren implements [driver.Session].
func (s *session) WatchChildren(ctx context.Context, path string) ([]string, driver.Stat, <-chan driver.Event, error) {
	if !validPath(path) {
		return nil, driver.Stat{}, nil, &opError{"watch children", path, driver.ErrBadArguments}
	}
	r := newRequest()
	r.kind, r.path = requestWatchChildren, path
	if err := s.do(ctx, "watch children", r); err != nil {
		return nil, driver.Stat{}, nil, err
	}
	names, stat, events := r.names, r.node.Stat, r.watch
	r.recycle()
	return names, stat, events, nil
}

// WatchExists implements [driver.Session].
func (s *session) WatchExists(ctx context.Context, path string) (driver.Stat, bool, <-chan driver.Event, error) {
	if !validPath(path) {
		return driver.Stat{}, false, nil, &opError{"watch exists", path, driver.ErrBadArguments}
	}
	r := newRequest()
	r.kind, r.path = requestWatchExists, path
	if err := s.do(ctx, "watch exists", r); err != nil {
		return driver.Stat{}, false, nil, err
	}
	stat, found, events := r.node.Stat, !r.missing, r.watch
	r.recycle()
	return stat, found, events, nil
}

// Multi implements [driver.Session].
func (s *session) Multi(ctx context.Context, ops []driver.Op) ([]driver.OpResult, error) {
	for i := range ops {
		if !wellFormed(&ops[i]) {
			return s.refuse(ops, i, driver.ErrBadArguments)
		}
	}
	r := newRequest()
	r.kind, r.path = requestMulti, "transaction"
	r.ops, r.results = ops, make([]driver.OpResult, len(ops))
	err := s.call(ctx, r)
	switch {
	case err == nil:
		results := r.results
		r.recycle()
		return results, nil
	case r.answered:
		return s.refuse(ops, r.txn.failed, err)
	}
	return nil, &opError{fmt.Sprintf("multi of %d", len(ops)), "", err}
}

// refuse makes the results of a transaction that has certainly failed with err. at is
// the operation that failed, negative if no single operation did.
func (s *session) refuse(ops []driver.Op, at int, err error) ([]driver.OpResult, error) {
	results := make([]driver.OpResult, len(ops))
	for i := range results {
		results[i].Err = driver.ErrRolledBack
	}
	if at < 0 {
		return results, &opError{fmt.Sprintf("multi of %d", len(ops)), "", err}
	}
	err = &opError{"multi: " + ops[at].Kind.String(), ops[at].Path, err}
	results[at].Err = err
	return results, err
}

// wellFormed does the check of a client before it sends a transaction.
func wellFormed(op *driver.Op) bool {
	if op.Kind == driver.OpCreate {
		return validCreatePath(op.Path, op.Mode) && op.Mode <= driver.Container
	}
	return validPath(op.Path)
}

// ID implements [driver.Session].
func (s *session) ID() int64 { return s.id }

// Timeout implements [driver.Session].
func (s *session) Timeout() time.Duration {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	return s.granted
}

// Conn implements [driver.Session].
func (s *session) Conn() (generation uint64, handshakeSent time.Time) {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	return s.gen, s.sentAt
}

// Server implements [driver.Session].
func (s *session) Server() string {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	return s.addr
}

// State implements [driver.Session].
func (s *session) State() (driver.State, <-chan struct{}) {
	s.e.mu.Lock()
	defer s.e.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.state, s.changed
}

// Close implements [driver.Session]. If the connection is lost while the request to
// end the session is under way, the request is sent again on the next connection.
func (s *session) Close(ctx context.Context) error {
	s.e.enter()
	first := s.closing == nil && !s.over
	if first {
		s.startClosing()
	}
	if s.lapsed && s.over {
		s.letGo()
	}
	s.e.leave()
	if !first { // the first call's context bounds this wait, too
		<-s.ended
		return s.endErr
	}
	select {
	case <-s.ended:
		return s.endErr
	default:
	}
	select {
	case <-s.ended:
		return s.endErr
	case <-ctx.Done():
	}
	s.e.enter()
	cause := driver.ErrNotSent
	if s.closing.sent {
		cause = driver.ErrConnLoss
	}
	s.end(&opError{"close session", "", oneline.Join(ctx.Err(), cause)}, driver.ErrClosed)
	s.e.leave()
	return s.endErr
}

// startClosing refuses the requests that have not been sent, and asks the ensemble to
// end the session after the requests in flight.
func (s *session) startClosing() {
	s.state = driver.Closed
	s.signal()
	s.dropWatches(driver.ErrClosed)
	queue := s.queue
	s.queue = nil
	for _, r := range queue {
		r.finish(driver.ErrClosed)
	}
	s.closing = &request{kind: requestCloseSession}
	s.submit(s.closing)
}
