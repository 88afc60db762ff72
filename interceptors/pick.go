package interceptors

import (
	"context"
	"fmt"
	"strings"

	"github.com/zklock/go-zklock/internal/naming"
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
// panics if c is nil, if key is empty, and if format does not have one %s or makes no
// name that a lock can have.
func ByMetadata(c *zklock.Client, key, format string) Pick {
	naming.MustHaveClient("interceptors: ByMetadata", c)
	if key == "" {
		panic("interceptors: ByMetadata: the key is empty")
	}
	name := naming.MustParse("interceptors: ByMetadata", format)
	return func(_ context.Context, call Call) zklock.Acquirer {
		values := call.Metadata.Get(key)
		switch {
		case len(values) > 1:
			return naming.Refusal{Err: fmt.Errorf("%w: the call has %d values for it, want one", zklock.ErrInvalidName, len(values))}
		case len(values) == 0 || values[0] == "":
			return Missing()
		}
		return c.Mutex(name.With(values[0]))
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
		if naming.IsMissing(a) {
			return nil
		}
		return a
	}
}

// Missing is what a Pick returns for a call that does not say which lock it
// needs. The call is refused with InvalidArgument, or passes without a lock
// under Optional.
func Missing() zklock.Acquirer { return naming.Missing() }
