package integration_test

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/zklock/go-zklock/zklock"
)

// entry is a goroutine's record of one turn with a lock, or of one write.
type entry struct {
	Worker, Goroutine int
	Name              string
	Mode              zklock.Mode
	Token             zklock.Token

	// Version is the znode's version after a write, from 1. 0 means that the entry is
	// about a turn.
	Version int32

	// Began is when Acquire was called, Ended when Release had returned.
	Began, Ended int64

	// The lock was certainly held between From and To, because Valid was true afterwards. Both
	// are 0 if there was no such moment.
	From, To int64

	// Lost is when the lock was lost, or 0, and Cause is why.
	Lost  int64
	Cause string
}

// journal is the file that a worker writes its entries to.
type journal struct {
	mu   sync.Mutex
	file *os.File
	buf  *bufio.Writer
	enc  *gob.Encoder
	err  error // the errors of all writes so far
}

func createJournal(path string) (*journal, error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	buf := bufio.NewWriterSize(file, 1<<16)
	return &journal{file: file, buf: buf, enc: gob.NewEncoder(buf)}, nil
}

func (j *journal) note(entries ...entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range entries {
		j.err = errors.Join(j.err, j.enc.Encode(e))
	}
}

func (j *journal) close() error {
	return errors.Join(j.err, j.buf.Flush(), j.file.Close())
}

// readJournal returns the entries of a worker's journal.
func readJournal(path string) (entries []entry, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	dec := gob.NewDecoder(bufio.NewReaderSize(file, 1<<16))
	for {
		var e entry
		switch err := dec.Decode(&e); {
		case errors.Is(err, io.EOF):
			return entries, nil
		case err != nil:
			return nil, fmt.Errorf("journal %s: %w", path, err)
		}
		entries = append(entries, e)
	}
}
