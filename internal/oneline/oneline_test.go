package oneline

import (
	"errors"
	"io"
	"testing"
)

func TestJoin(t *testing.T) {
	if err := Join(); err != nil {
		t.Errorf("no errors: %v", err)
	}
	if err := Join(nil, nil); err != nil {
		t.Errorf("nil errors: %v", err)
	}
	if err := Join(nil, io.EOF); err != io.EOF {
		t.Errorf("one error: %v", err)
	}
	err := Join(io.EOF, nil, Join(io.ErrClosedPipe, io.ErrNoProgress))
	if got, want := err.Error(), "EOF; io: read/write on closed pipe; multiple Read calls return no data or error"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, e := range []error{io.EOF, io.ErrClosedPipe, io.ErrNoProgress, err} {
		if !errors.Is(err, e) {
			t.Errorf("%v does not match %v", err, e)
		}
	}
	if errors.Is(err, io.ErrShortWrite) {
		t.Error("it matches an error that is not in it")
	}
}
