package middleware

import (
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"github.com/zklock/go-zklock/internal/naming"
	"github.com/zklock/go-zklock/zklock"
)

// ByPathValue picks the mutex named by a wildcard of the request's pattern, put
// into nameFormat in place of its %s:
//
//	mux.Handle("POST /orders/{id}/pay", lock(pay)) // lock := New(ByPathValue(client, "id", "orders/%s"))
//
// The middleware has to stand behind the mux, around a handler that was
// registered, since it is the mux that knows the pattern. A request without the
// value is answered 400, see Optional. If its pattern has no such wildcard, no request
// can have the value: that is answered 500, and logged at level Error (WithLogger).
//
// The value comes from the client: it is put in as it is, so a lock may be
// taken under any name that begins and ends as nameFormat does. ByPathValue panics
// if c is nil, if key is not a wildcard's name, if nameFormat does not have one %s, and if
// nameFormat makes no name that a lock can have.
func ByPathValue(c *zklock.Client, key, nameFormat string) func(*http.Request) zklock.Acquirer {
	naming.MustHaveClient("middleware: ByPathValue", c)
	if key == "" || strings.ContainsAny(key, "{}/:") || strings.ContainsFunc(key, unicode.IsSpace) || strings.HasSuffix(key, "...") {
		panic(fmt.Sprintf("middleware: ByPathValue: key %q: want the name of a wildcard, such as id for {id}", key))
	}
	name := naming.MustParse("middleware: ByPathValue", nameFormat)
	return func(r *http.Request) zklock.Acquirer {
		value := r.PathValue(key)
		if value == "" {
			return withoutPathValue(r.Pattern, key)
		}
		return c.Mutex(name.With(value))
	}
}

// withoutPathValue is picked for a request whose pattern gives no value for key.
func withoutPathValue(pattern, key string) zklock.Acquirer {
	switch {
	case pattern == "":
		return naming.Misconfigured(fmt.Sprintf("the request has no pattern, and so no value for {%s}: put the middleware behind the mux", key))
	case key == "*" && strings.HasSuffix(pattern, "*"): // as other routers write {rest...}
	case !strings.Contains(pattern, "{"+key+"}") && !strings.Contains(pattern, "{"+key+"...}") && !strings.Contains(pattern, "{"+key+":"):
		return naming.Misconfigured(fmt.Sprintf("the pattern %q has no wildcard {%s}", pattern, key))
	}
	return Missing()
}

// ByHeader picks the mutex named by a request header, such as Idempotency-Key,
// put into nameFormat in place of its %s. A request that has the header more than
// once, with or without difference, is answered 400 as one without it is. ByHeader
// panics if c is nil, if key is empty, and for a nameFormat as ByPathValue does.
func ByHeader(c *zklock.Client, key, nameFormat string) func(*http.Request) zklock.Acquirer {
	naming.MustHaveClient("middleware: ByHeader", c)
	if key == "" {
		panic("middleware: ByHeader: the key is empty: want the name of a header")
	}
	name := naming.MustParse("middleware: ByHeader", nameFormat)
	return func(r *http.Request) zklock.Acquirer {
		return only(c, name, r.Header.Values(key))
	}
}

// ByQuery picks the mutex named by a parameter of the request's URL, put into
// nameFormat in place of its %s. A request that has the parameter more than once is
// answered 400: the handler might go by another one of them. ByQuery panics as
// ByHeader does.
func ByQuery(c *zklock.Client, key, nameFormat string) func(*http.Request) zklock.Acquirer {
	naming.MustHaveClient("middleware: ByQuery", c)
	if key == "" {
		panic("middleware: ByQuery: the key is empty: want the name of a parameter")
	}
	name := naming.MustParse("middleware: ByQuery", nameFormat)
	return func(r *http.Request) zklock.Acquirer {
		return only(c, name, r.URL.Query()[key])
	}
}

// ReadersAndWriters picks the reader of a read-write lock for requests that
// only look (GET, HEAD and OPTIONS), so that they are served together, and its
// writer for all others. name returns the lock's name; a request for which that
// is "" is answered 400, see Optional. ReadersAndWriters panics if c or name is nil.
func ReadersAndWriters(c *zklock.Client, name func(*http.Request) string) func(*http.Request) zklock.Acquirer {
	naming.MustHaveClient("middleware: ReadersAndWriters", c)
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
func only(c *zklock.Client, name naming.Format, values []string) zklock.Acquirer {
	switch {
	case len(values) > 1:
		return naming.Refusal{Err: fmt.Errorf("%w: the request has %d values for it, want one", zklock.ErrInvalidName, len(values))}
	case len(values) == 0 || values[0] == "":
		return Missing()
	}
	return c.Mutex(name.With(values[0]))
}

// Optional lets requests pass that lack the value which pick goes by, instead
// of answering 400. It knows them by Missing, so it works for the picks of
// package ginlock too. Around several routes, those pass that do not have the path key
// at all: nothing shows a misspelt one then.
func Optional[R any](pick func(R) zklock.Acquirer) func(R) zklock.Acquirer {
	return func(r R) zklock.Acquirer {
		a := pick(r)
		if naming.IsMissing(a) {
			return nil
		}
		return a
	}
}

// Missing is what a pick returns for a request that does not say which lock it
// needs. The request is answered 400, or passes without a lock under Optional.
func Missing() zklock.Acquirer { return naming.Missing() }
