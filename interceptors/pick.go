package interceptors

import (
	"context"
	"fmt"

	"github.com/zklock/go-zklock/internal/naming"
	"github.com/zklock/go-zklock/zklock"
)

// PassThrough is a Pick that chooses no lock for any call.
func PassThrough(context.Context, Call) zklock.Acquirer { return nil }

// ByMetadata picks a mutex. Its name is format, with %s replaced by the value of a
// metadata key. A call without the key is refused with InvalidArgument, see Optional. So
// is a call that has the key more than once, even with equal values; Optional does not
// change that.
//
// A server inserts the client's value unchanged, so a client can choose any lock whose name
// begins and ends as format does. ByMetadata panics if c is nil, if key is empty, if format
// does not contain %s exactly once, and if format cannot give a valid lock name.
func ByMetadata(c *zklock.Client, key, format string) Pick {
	naming.MustHaveClient("interceptors: ByMetadata", c)
	if key == "" {
		panic("interceptors: ByMetadata: the key is empty: want a metadata key")
	}
	name := naming.MustParse("interceptors: ByMetadata", format, 1)
	return func(_ context.Context, call Call) zklock.Acquirer {
		values := call.Metadata.Get(key)
		switch {
		case len(values) > 1:
			return zklock.Refuse(fmt.Errorf("%w: the call has %d values for the name, want one", zklock.ErrInvalidName, len(values)))
		case len(values) == 0 || values[0] == "":
			return Missing()
		}
		return c.Mutex(name.With(values[0]))
	}
}

// ByMethod uses the table's Pick for the call's method. A key of the table is a full
// method name, as in "/shop.v1.Orders/Pay", or all methods of a service, as in
// "/shop.v1.Orders/*". The full name has precedence. Methods that are not in the table,
// and those whose Pick is nil, need no lock. ByMethod panics if a key does not have one
// of the two forms.
func ByMethod(table map[string]Pick) Pick {
	methods := naming.MustParseMethods("interceptors: ByMethod", table)
	return func(ctx context.Context, call Call) zklock.Acquirer {
		if pick := methods.Of(call.FullMethod); pick != nil {
			return pick(ctx, call)
		}
		return nil
	}
}

// Optional returns a Pick like pick. But if pick returns Missing for a call, the call is served
// without a lock, and not refused. Optional panics if pick is nil.
func Optional(pick Pick) Pick {
	if pick == nil {
		panic("interceptors: Optional: pick is nil: want a function that chooses each call's lock")
	}
	return func(ctx context.Context, call Call) zklock.Acquirer {
		a := pick(ctx, call)
		if naming.IsMissing(a) {
			return nil
		}
		return a
	}
}

// Missing returns the value that a Pick returns for a call that does not say which lock
// it needs. The call is refused with InvalidArgument, or with Optional is served without
// a lock. A Pick that refuses a call for another reason returns zklock.Refuse.
func Missing() zklock.Acquirer { return naming.Missing() }
