package middleware

import (
	"context"
	"fmt"
	"net/http"

	"github.com/zklock/go-zklock/middleware/internal/format"
	"github.com/zklock/go-zklock/zklock"
)

// ByPathValue picks the mutex named by a wildcard of the request's pattern, put
// into nameFormat in place of its %s:
//
//	mux.Handle("POST /orders/{id}/pay", lock(pay)) // lock := New(ByPathValue(client, "id", "orders/%s"))
//
// The middleware has to stand behind the mux, around a handler that was
// registered, since it is the mux that knows the pattern. A request without the
// value is answered 400, see Optional.
//
// The value comes from the client: it is put in as it is, so a lock may be
// taken under any name that begins and ends as nameFormat does. ByPathValue panics
// if nameFormat does not have one %s.
func ByPathValue(c *zklock.Client, key, nameFormat string) func(*http.Request) zklock.Acquirer {
	name := format.Parse(nameFormat)
	return func(r *http.Request) zklock.Acquirer {
		value := r.PathValue(key)
		if value == "" {
			return Missing()
		}
		return c.Mutex(name.With(value))
	}
}

// ByHeader picks the mutex named by a request header, such as Idempotency-Key,
// put into nameFormat in place of its %s. A request that has the header more than
// once, with or without difference, is answered 400 as one without it is.
func ByHeader(c *zklock.Client, key, nameFormat string) func(*http.Request) zklock.Acquirer {
	name := format.Parse(nameFormat)
	return func(r *http.Request) zklock.Acquirer {
		return only(c, name, r.Header.Values(key))
	}
}

// ByQuery picks the mutex named by a parameter of the request's URL, put into
// nameFormat in place of its %s. A request that has the parameter more than once is
// answered 400: the handler might go by another one of them.
func ByQuery(c *zklock.Client, key, nameFormat string) func(*http.Request) zklock.Acquirer {
	name := format.Parse(nameFormat)
	return func(r *http.Request) zklock.Acquirer {
		return only(c, name, r.URL.Query()[key])
	}
}

// ReadersAndWriters picks the reader of a read-write lock for requests that
// only look (GET, HEAD and OPTIONS), so that they are served together, and its
// writer for all others. name returns the lock's name; a request for which that
// is "" is answered 400, see Optional.
func ReadersAndWriters(c *zklock.Client, name func(*http.Request) string) func(*http.Request) zklock.Acquirer {
	if name == nil {
		panic("middleware: ReadersAndWriters with a nil name")
	}
	return func(r *http.Request) zklock.Acquirer {
		n := name(r)
		if n == "" {
			return Missing()
		}
		rw := c.RWMutex(n)
		switch r.Method {
		case http.MethodGet, http.MethodHead, http.MethodOptions, "": // "" is GET
			return rw.Reader()
		}
		return rw.Writer()
	}
}

// only picks by a value that must be the only one.
func only(c *zklock.Client, name format.Name, values []string) zklock.Acquirer {
	switch {
	case len(values) > 1:
		return unnamed{fmt.Errorf("%w: the request has %d values for it, want one", zklock.ErrInvalidName, len(values))}
	case len(values) == 0 || values[0] == "":
		return Missing()
	}
	return c.Mutex(name.With(values[0]))
}

// Optional lets requests pass that lack the value which pick goes by, instead
// of answering 400. It knows them by Missing, so it works for the picks of
// package ginlock too.
func Optional[R any](pick func(R) zklock.Acquirer) func(R) zklock.Acquirer {
	return func(r R) zklock.Acquirer {
		a := pick(r)
		if a == missing {
			return nil
		}
		return a
	}
}

// missing is the one value of Missing.
var missing zklock.Acquirer = unnamed{fmt.Errorf("%w: the request lacks the value that names it", zklock.ErrInvalidName)}

// Missing is what a pick returns for a request that does not say which lock it
// needs. The request is answered 400, or passes without a lock under Optional.
func Missing() zklock.Acquirer { return missing }

// unnamed is an Acquirer that cannot be acquired.
type unnamed struct{ err error }

// Name implements zklock.Acquirer.
func (unnamed) Name() string { return "" }

// Acquire implements zklock.Acquirer.
func (u unnamed) Acquire(context.Context, ...zklock.AcquireOption) (*zklock.Lock, error) {
	return nil, &zklock.Error{Op: "acquire", Err: u.err}
}

// TryAcquire implements zklock.Acquirer.
func (u unnamed) TryAcquire(ctx context.Context, opts ...zklock.AcquireOption) (*zklock.Lock, error) {
	return u.Acquire(ctx, opts...)
}
