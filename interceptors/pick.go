package interceptors

import (
	"context"
	"fmt"
	"strings"

	"github.com/zklock/go-zklock/zklock"
)

// PassThrough picks no lock for any call.
func PassThrough(context.Context, Call) zklock.Acquirer { return nil }

// ByMetadata picks the mutex named by a metadata key, put into format in place
// of its %s. A call that has the key more than once, with or without
// difference, is refused with InvalidArgument as one without it is, see
// Optional.
//
// On a server the value comes from the client: it is put in as it is, so a lock
// may be taken under any name that begins and ends as format does. ByMetadata
// panics if format does not have one %s.
func ByMetadata(c *zklock.Client, key, format string) Pick {
	name := parseFormat(format)
	return func(_ context.Context, call Call) zklock.Acquirer {
		values := call.Metadata.Get(key)
		switch {
		case len(values) > 1:
			return unnamed{fmt.Errorf("%w: the call has %d values for it, want one", zklock.ErrInvalidName, len(values))}
		case len(values) == 0 || values[0] == "":
			return Missing()
		}
		return c.Mutex(name.with(values[0]))
	}
}

// ByMethod picks as the table says for a call's method: under its full name, as
// in "/shop.v1.Orders/Pay", or else under that of all methods of its service,
// "/shop.v1.Orders/*". Methods that are not in it pass without a lock, as those
// with a nil Pick do. ByMethod panics if a key is neither.
func ByMethod(table map[string]Pick) Pick {
	exact := make(map[string]Pick, len(table))
	for method, pick := range table {
		service, name, ok := strings.Cut(strings.TrimPrefix(method, "/"), "/")
		if !strings.HasPrefix(method, "/") || !ok || service == "" || name == "" || strings.Contains(name, "/") {
			panic(fmt.Sprintf("interceptors: ByMethod with %q: want /package.Service/Method or /package.Service/*", method))
		}
		exact[method] = pick
	}
	return func(ctx context.Context, call Call) zklock.Acquirer {
		pick, ok := exact[call.FullMethod]
		if !ok {
			pick = exact[call.FullMethod[:strings.LastIndexByte(call.FullMethod, '/')+1]+"*"]
		}
		if pick == nil {
			return nil
		}
		return pick(ctx, call)
	}
}

// Optional lets calls pass that lack the value which pick goes by, instead of
// refusing them. It knows them by Missing.
func Optional(pick Pick) Pick {
	return func(ctx context.Context, call Call) zklock.Acquirer {
		a := pick(ctx, call)
		if a == missing {
			return nil
		}
		return a
	}
}

// missing is the one value of Missing.
var missing zklock.Acquirer = unnamed{fmt.Errorf("%w: the call lacks the value that names it", zklock.ErrInvalidName)}

// Missing is what a Pick returns for a call that does not say which lock it
// needs. The call is refused with InvalidArgument, or passes without a lock
// under Optional.
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
