package middleware

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/zklock/go-zklock/internal/naming"
	"github.com/zklock/go-zklock/zklock"
)

// ByPathValue picks a mutex. Its name is nameFormat, with %s replaced by the value
// of a wildcard of the request's pattern:
//
//	mux.Handle("POST /orders/{id}/pay", lock(pay)) // lock := New(ByPathValue(client, "id", "orders/%s"))
//
// The middleware must be behind the mux, around a registered handler, because the
// mux sets the pattern. A request without the value gets a 400, see Optional. If
// its pattern does not have the wildcard, no request can have the value: the
// response is 500, and the error is logged at level Error (WithLogger).
//
// The client's value is inserted unchanged, so a client can choose any lock whose name begins
// and ends as nameFormat does; ByPathValues escapes it. ByPathValue panics if c is nil, if key is not a wildcard's name,
// if nameFormat does not contain %s exactly once, and if nameFormat cannot give a valid lock
// name.
func ByPathValue(c *zklock.Client, key, nameFormat string) func(*http.Request) zklock.Acquirer {
	naming.MustHaveClient("middleware: ByPathValue", c)
	mustBeWildcard("middleware: ByPathValue", key)
	name := naming.MustParse("middleware: ByPathValue", nameFormat, 1)
	return func(r *http.Request) zklock.Acquirer {
		value := r.PathValue(key)
		if value != "" {
			return c.Mutex(name.With(value))
		}
		if reason := lacksWildcard(r.Pattern, key); reason != "" {
			return naming.Misconfigured(reason)
		}
		return Missing()
	}
}

// ByPathValues picks a mutex by several wildcards of the request's pattern. Its name is nameFormat,
// with each %s replaced by the value of a key, in their order:
//
//	mux.Handle("POST /events/{event}/seats/{seat}/book", lock(book)) // lock := New(ByPathValues(client, "events/%s/seats/%s", "event", "seat"))
//
// Values are escaped, so that two requests have one lock only if all of their values are equal: a
// slash becomes %2F, and a percent sign %25. So does the character behind a %s, if another %s
// follows: with "%s:%s", a colon becomes %3A. It cannot be a letter or a digit.
//
// A request with an empty value, or with values that make no valid lock name, gets a 400. Apart from
// that, ByPathValues is like ByPathValue. It panics if c is nil, if a key is not a wildcard's name,
// if nameFormat does not contain one %s for each key, if no character separates two of them, and if
// nameFormat cannot give a valid lock name.
func ByPathValues(c *zklock.Client, nameFormat string, keys ...string) func(*http.Request) zklock.Acquirer {
	naming.MustHaveClient("middleware: ByPathValues", c)
	for _, key := range keys {
		mustBeWildcard("middleware: ByPathValues", key)
	}
	keys = slices.Clone(keys)
	name := naming.MustParse("middleware: ByPathValues", nameFormat, len(keys))
	return func(r *http.Request) zklock.Acquirer {
		values, missing := make([]string, len(keys)), false
		for i, key := range keys {
			if values[i] = r.PathValue(key); values[i] != "" {
				continue
			}
			if reason := lacksWildcard(r.Pattern, key); reason != "" {
				return naming.Misconfigured(reason)
			}
			missing = true
		}
		if missing {
			return Missing()
		}
		return c.Mutex(name.Join(values))
	}
}

// mustBeWildcard panics if key is not the name of a wildcard of a pattern. owner is the exported
// function that got it.
func mustBeWildcard(owner, key string) {
	if key == "" || strings.ContainsAny(key, "{}/:") || strings.ContainsFunc(key, unicode.IsSpace) || strings.HasSuffix(key, "...") {
		panic(fmt.Sprintf("%s: key %q: want the name of a wildcard, such as id for {id}", owner, key))
	}
}

// lacksWildcard returns why no request with the pattern can have a value for key; "" if one can.
func lacksWildcard(pattern, key string) string {
	switch {
	case pattern == "":
		return fmt.Sprintf("the request has no pattern, and so no value for {%s}: place the middleware behind the mux", key)
	case key == "*" && strings.HasSuffix(pattern, "*"): // other routers' form of {rest...}
	case !strings.Contains(pattern, "{"+key+"}") && !strings.Contains(pattern, "{"+key+"...}") && !strings.Contains(pattern, "{"+key+":"):
		return fmt.Sprintf("the pattern %q has no wildcard {%s}", pattern, key)
	}
	return ""
}

// ByHeader picks a mutex. Its name is nameFormat, with %s replaced by the value of a
// request header such as Idempotency-Key. A request without the header gets a 400,
// see Optional. So does a request that has the header more than once, even with
// equal values; Optional does not change that. The client chooses the name as with
// ByPathValue. ByHeader panics if c is nil, if key is empty, and if ByPathValue
// would panic because of nameFormat.
func ByHeader(c *zklock.Client, key, nameFormat string) func(*http.Request) zklock.Acquirer {
	naming.MustHaveClient("middleware: ByHeader", c)
	if key == "" {
		panic("middleware: ByHeader: the key is empty: want the name of a header")
	}
	name := naming.MustParse("middleware: ByHeader", nameFormat, 1)
	return func(r *http.Request) zklock.Acquirer {
		return only(c, name, r.Header.Values(key))
	}
}

// ByQuery picks a mutex. Its name is nameFormat, with %s replaced by the value of a
// parameter of the request's URL. A request without the parameter gets a 400, see
// Optional. So does a request that has it more than once, since the handler might
// use another of the values. The client chooses the name as with ByPathValue.
// ByQuery panics as ByHeader does.
func ByQuery(c *zklock.Client, key, nameFormat string) func(*http.Request) zklock.Acquirer {
	naming.MustHaveClient("middleware: ByQuery", c)
	if key == "" {
		panic("middleware: ByQuery: the key is empty: want the name of a parameter")
	}
	name := naming.MustParse("middleware: ByQuery", nameFormat, 1)
	return func(r *http.Request) zklock.Acquirer {
		return only(c, name, r.URL.Query()[key])
	}
}

// ReadersAndWriters picks a read-write lock: its reader for GET, HEAD and OPTIONS
// requests, which are served together, and its writer for all others. name returns the lock's
// name. If it returns "", the request gets a 400, see Optional. ReadersAndWriters panics if c
// or name is nil.
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

// only picks the mutex that values names. values must have exactly one element.
func only(c *zklock.Client, name naming.Format, values []string) zklock.Acquirer {
	switch {
	case len(values) > 1:
		return zklock.Refuse(fmt.Errorf("%w: the request has %d values for the name, want one", zklock.ErrInvalidName, len(values)))
	case len(values) == 0 || values[0] == "":
		return Missing()
	}
	return c.Mutex(name.With(values[0]))
}

// Optional returns a pick like pick. But if pick returns Missing for a request, the request is
// served without a lock, and does not get a 400. It works for the picks of this package, of package
// ginlock, and for those of the program that return Missing. If the middleware is around several
// routes, routes that do not have the path value at all are served without a lock too. So a
// misspelt key is not reported. Optional panics if pick is nil.
func Optional[R any](pick func(R) zklock.Acquirer) func(R) zklock.Acquirer {
	if pick == nil {
		panic("middleware: Optional: pick is nil: want a function that chooses each request's lock")
	}
	return func(r R) zklock.Acquirer {
		a := pick(r)
		if naming.IsMissing(a) {
			return nil
		}
		return a
	}
}

// Missing returns the value that a pick returns for a request that does not say
// which lock it needs. The request gets a 400, or with Optional is served without a
// lock. A pick that refuses a request for another reason returns zklock.Refuse.
func Missing() zklock.Acquirer { return naming.Missing() }
