package middleware_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/middleware"
	"github.com/zklock/go-zklock/zklock"
)

// download is the size of a response that does not fit into the socket buffers.
const download = 64 << 20

// Handlers that send a long response of a known length.
var downloads = map[string]func(rw http.ResponseWriter, r *http.Request, file string) error{
	"ServeFile": func(rw http.ResponseWriter, r *http.Request, file string) error {
		http.ServeFile(rw, r, file)
		return nil
	},
	"a copy of a file": func(rw http.ResponseWriter, _ *http.Request, file string) error {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(rw, f)
		return err
	},
	"a copy of a reader": func(rw http.ResponseWriter, _ *http.Request, _ string) error {
		_, err := io.Copy(rw, io.LimitReader(zeros{}, download))
		return err
	},
	"one Write": func(rw http.ResponseWriter, _ *http.Request, _ string) error {
		_, err := rw.Write(make([]byte, download))
		return err
	},
	"one WriteString": func(rw http.ResponseWriter, _ *http.Request, _ string) error {
		_, err := io.WriteString(rw, strings.Repeat("\x00", download))
		return err
	},
}

// zeros is an endless source.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// sparse makes a file of n bytes.
func sparse(t *testing.T, n int64) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "download")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, n); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestDownloadIsCutOffWhenItsLockIsLost(t *testing.T) {
	file := sparse(t, download)
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		for name, send := range downloads {
			t.Run(proto+", "+name, func(t *testing.T) {
				w := newWorld(t)
				entered, sent := make(chan context.Context, 1), make(chan error, 1)
				srv := serveProto(t, proto, middleware.New(w.fixed)(w.watched(func(rw http.ResponseWriter, r *http.Request) {
					entered <- r.Context()
					rw.Header().Set("Content-Length", strconv.Itoa(download))
					sent <- send(rw, r, file)
				})))
				resp, err := srv.Client().Get(srv.URL)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if _, err := io.ReadFull(resp.Body, make([]byte, 1000)); err != nil {
					t.Fatal(err)
				}
				w.Lose(<-entered)
				n, err := io.Copy(io.Discard, resp.Body)
				if err == nil {
					t.Errorf("status %d and all %d bytes, though the lock was lost after the first 1000", resp.StatusCode, 1000+n)
				}
				if err := <-sent; name != "ServeFile" && !errors.Is(err, zklock.ErrLost) {
					t.Errorf("the handler got %v, want ErrLost", err)
				}
			})
		}
	}
}

// TestLossDuringACopyFromASlowSource copies from a source that delivers the rest of the
// response after the lock is lost.
func TestLossDuringACopyFromASlowSource(t *testing.T) {
	for _, begun := range []int{0, 600} {
		w := newWorld(t)
		srv := serve(t, middleware.New(w.fixed)(w.watched(func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Length", strconv.Itoa(begun+700))
			src := io.MultiReader(bytes.NewReader(make([]byte, begun)), losing{w, r}, bytes.NewReader(make([]byte, 700)))
			if _, err := io.Copy(rw, src); !errors.Is(err, zklock.ErrLost) {
				t.Errorf("the handler got %v, want ErrLost", err)
			}
		})))
		resp, err := srv.Client().Get(srv.URL)
		if begun > 0 {
			if err == nil {
				t.Errorf("status %d, want an aborted connection", resp.StatusCode)
				resp.Body.Close()
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusFailedDependency {
			t.Errorf("status %d, want 424", resp.StatusCode)
		}
	}
}

// sendfile is a ResponseWriter that counts the sources that package net could let the
// system send: a file, or one io.LimitedReader around a file.
type sendfile struct {
	*httptest.ResponseRecorder
	files, bytes int64
}

func (s *sendfile) ReadFrom(src io.Reader) (int64, error) {
	n, err := io.Copy(io.Discard, src)
	if limited, ok := src.(*io.LimitedReader); ok {
		src = limited.R
	}
	if _, ok := src.(interface {
		io.Seeker
		Stat() (os.FileInfo, error)
	}); ok {
		s.files++
		s.bytes += n
	}
	return n, err
}

func TestFileGoesToTheSocketWithoutACopy(t *testing.T) {
	const size = 1<<20 + 1000
	file := sparse(t, size)
	for _, name := range []string{"ServeFile", "a copy of a file"} {
		w := newWorld(t)
		h := middleware.New(w.fixed)(w.watched(func(rw http.ResponseWriter, r *http.Request) {
			if err := downloads[name](rw, r, file); err != nil {
				t.Error(err)
			}
		}))
		inner := &sendfile{ResponseRecorder: httptest.NewRecorder()}
		h.ServeHTTP(inner, httptest.NewRequest("GET", "/", nil))
		// The first bytes are written separately, since ReadFrom has to read them.
		if got := inner.bytes + int64(inner.Body.Len()); got != size || inner.Body.Len() > 512 || inner.files > 5 {
			t.Errorf("%s: %d bytes in %d files, and %d written separately, want %d in all", name, inner.bytes, inner.files, inner.Body.Len(), size)
		}
	}
}
