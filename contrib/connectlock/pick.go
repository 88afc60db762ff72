package connectlock

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/zklock/go-zklock/interceptors/protolock"
	"github.com/zklock/go-zklock/internal/naming"
	"github.com/zklock/go-zklock/internal/oneline"
	"github.com/zklock/go-zklock/zklock"
)

// ByHeader picks a mutex. Its name is format, with %s replaced by the value of a header of the
// request. A call without the header is refused with invalid_argument, see Optional. So is a
// call that has the header more than once, even with equal values; Optional does not change
// that.
//
// A server inserts the client's value unchanged, so a client can choose any lock whose name
// begins and ends as format does. ByHeader panics if c is nil, if key is empty, if format does
// not contain %s exactly once, and if format cannot give a valid lock name.
func ByHeader(c *zklock.Client, key, format string) Pick {
	naming.MustHaveClient("connectlock: ByHeader", c)
	if key == "" {
		panic("connectlock: ByHeader: the key is empty: want the name of a header")
	}
	name := naming.MustParse("connectlock: ByHeader", format, 1)
	return func(_ context.Context, call Call) zklock.Acquirer {
		values := call.Header.Values(key)
		switch {
		case len(values) > 1:
			return zklock.Refuse(fmt.Errorf("%w: the call has %d values for the name, want one", zklock.ErrInvalidName, len(values)))
		case len(values) == 0 || values[0] == "":
			return Missing()
		}
		return c.Mutex(name.With(values[0]))
	}
}

// ByField picks a mutex. Its name is format, with %s replaced by the value of a field of the
// request message. The rules are those of interceptors.ByField: path is the field's name in the
// .proto file, with dots for fields of inner messages; a call that does not set the field is
// refused with invalid_argument, see Optional; handlers of streams need WithFirstMessage.
//
// ByField panics if c is nil, if path is malformed, if format does not contain %s exactly once,
// and if format cannot give a valid lock name.
func ByField(c *zklock.Client, path, format string) Pick {
	pick := protolock.ByField("connectlock: ByField", c, path, format)
	return func(_ context.Context, call Call) zklock.Acquirer { return pick(call.Request) }
}

// ByFields picks a mutex by several fields of the request message. Its name is format, with each %s
// replaced by the value of the field with the next path:
//
//	connectlock.ByFields(client, "events/%s/seats/%s", "event_id", "seat.number")
//
// The rules are those of interceptors.ByFields: values are escaped, so that two calls have one lock
// only if all of their values are equal; a call that does not set one of the fields, or whose values
// make no valid lock name, is refused with invalid_argument. ByFields panics as interceptors.ByFields
// does.
func ByFields(c *zklock.Client, format string, paths ...string) Pick {
	pick := protolock.ByFields("connectlock: ByFields", c, format, paths)
	return func(_ context.Context, call Call) zklock.Acquirer { return pick(call.Request) }
}

// FromProto picks the lock that a method's declaration names, in the option of
// zklock/v1/lock.proto:
//
//	rpc Pay(PayRequest) returns (PayReply) {
//	  option (zklock.v1.lock) = { name: "orders/{order_id}" mode: EXCLUSIVE wait: "2s" };
//	}
//
// The rules are those of interceptors.FromProto. If a declaration is wrong, every call of the
// method fails with internal, and is logged at level Error. CheckProto finds such declarations.
//
// FromProto panics if c is nil.
func FromProto(c *zklock.Client) Pick {
	declarations := protolock.FromProto("connectlock", c)
	return func(_ context.Context, call Call) zklock.Acquirer {
		return declarations.Pick(call.Procedure, call.Request)
	}
}

// CheckProto checks the declarations of services, given by their full names, which generated
// code has as constants: shopv1connect.OrdersName. Call it at the start of a program. It
// returns nil, or an error for each wrong declaration, and for each service that is not in
// protoregistry.GlobalFiles.
func CheckProto(services ...string) error {
	var procedures []string
	var errs []error
	for _, service := range services {
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
		d, ok := found.(protoreflect.ServiceDescriptor)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("connectlock: service %q: %w: import its generated code", service, err))
			continue
		case !ok:
			errs = append(errs, fmt.Errorf("connectlock: %q is not a service: pass the full name of one", service))
			continue
		}
		for i := range d.Methods().Len() {
			procedures = append(procedures, "/"+service+"/"+string(d.Methods().Get(i).Name()))
		}
	}
	return oneline.Join(oneline.Join(errs...), protolock.Check("connectlock", procedures))
}

// ByProcedure uses the table's Pick for the call's procedure. A key of the table is a full
// name, as in "/shop.v1.Orders/Pay", or all procedures of a service, as in "/shop.v1.Orders/*".
// The full name has precedence. Procedures that are not in the table, and those whose Pick is
// nil, need no lock. ByProcedure panics if a key does not have one of the two forms.
func ByProcedure(table map[string]Pick) Pick {
	procedures := naming.MustParseMethods("connectlock: ByProcedure", table)
	return func(ctx context.Context, call Call) zklock.Acquirer {
		if pick := procedures.Of(call.Procedure); pick != nil {
			return pick(ctx, call)
		}
		return nil
	}
}

// Optional returns a Pick like pick. But if pick returns Missing for a call, the call is served
// without a lock, and not refused. Optional panics if pick is nil.
func Optional(pick Pick) Pick {
	if pick == nil {
		panic("connectlock: Optional: pick is nil: want a function that chooses each call's lock")
	}
	return func(ctx context.Context, call Call) zklock.Acquirer {
		if a := pick(ctx, call); !naming.IsMissing(a) {
			return a
		}
		return nil
	}
}

// Missing returns the value that a Pick returns for a call that does not say which lock it
// needs. The call is refused with invalid_argument, or with Optional is served without a lock.
// A Pick that refuses a call for another reason returns zklock.Refuse.
func Missing() zklock.Acquirer { return naming.Missing() }
