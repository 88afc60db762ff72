package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/zklock/go-zklock/zklock/driver"
)

// seqSize is the length of the number that a server adds to the path of a sequential znode.
const seqSize = 10

// ephemeral returns how many bytes the znode that op creates counts; 0 if it creates no ephemeral one.
func ephemeral(op *driver.Op) (bytes int) {
	if op.Kind != driver.OpCreate || !op.Mode.Ephemeral() {
		return 0
	}
	bytes = EphemeralSize(len(op.Path))
	if op.Mode.Sequential() {
		bytes += seqSize
	}
	return bytes
}

// Occupy counts the ephemeral znodes that a transaction of the program creates. An error that matches
// driver.ErrTooLarge means that the session has no room for them. Without an error Vacate must be called with the outcome.
func (s *Session) Occupy(ctx context.Context, ops []driver.Op) error {
	bytes := 0
	for i := range ops {
		bytes += ephemeral(&ops[i])
	}
	for bytes > 0 {
		err := s.occupy(bytes)
		if err == nil || ephemerals(s.common.bounds.limit(s.settings)) >= ephemerals(s.common.bounds.hoped(s.settings)) {
			return err
		}
		if err := s.grow(ctx, bytes); err != nil {
			return err
		}
	}
	return nil
}

// occupy counts so many more bytes of ephemeral znodes of the program.
func (s *life) occupy(bytes int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if room := ephemerals(s.common.bounds.limit(s.settings)); s.foreign[""]+bytes > room/2 || !s.hasRoom(bytes) {
		return fmt.Errorf("%w: the ephemeral znodes that transactions under locks make have at most %d bytes of paths in one session, with jute_maxbuffer=%d, and share its room of %d with queue nodes: delete some by such transactions: %w",
			errNoRoomForTxn, room/2, s.common.bounds.limit(s.settings), room, driver.ErrTooLarge)
	}
	if s.foreign == nil {
		s.foreign = make(map[string]int)
	}
	s.foreignLocked(bytes)
	return nil
}

// errNoRoomForTxn is in the error of a transaction that a session has no room for.
var errNoRoomForTxn = errors.New("the session's end would be too large for the servers")

// Vacate ends the count of the ephemeral znodes that a transaction has deleted, or that it has not made: err is its
// error, and results, with one element for each of ops, are valid if there is none. What may exist counts.
func (s *life) Vacate(ops []driver.Op, results []driver.OpResult, err error) {
	if len(ops) == 0 {
		return
	}
	applied, unknown := err == nil, errors.Is(err, driver.ErrConnLoss)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range ops {
		op, path, bytes := &ops[i], ops[i].Path, ephemeral(&ops[i])
		if applied && bytes > 0 {
			path = results[i].Path
		}
		before := s.foreign[path]
		switch {
		case bytes > 0 && !applied && !unknown:
			s.foreignLocked(-bytes)
		case bytes > 0 && (applied || !op.Mode.Sequential()): // the znode of that path before is gone, or this one does not exist
			s.foreignLocked(-before)
			s.foreign[path] = bytes
		case op.Kind == driver.OpDelete && applied && before > 0:
			s.foreignLocked(-before)
			delete(s.foreign, path)
		}
	}
}

// foreignLocked counts more or less bytes of ephemeral znodes of the program. Those whose paths are not known stay
// in the sum.
func (s *life) foreignLocked(bytes int) {
	s.foreign[""] += bytes
	s.bytes.Add(int64(bytes))
}

// Free ends the count of the bytes of ephemeral znodes of the client that are gone.
func (s *life) Free(bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes.Add(int64(-bytes))
}
