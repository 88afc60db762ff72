package interceptors

import (
	"context"

	"github.com/zklock/go-zklock/interceptors/protolock"
	"github.com/zklock/go-zklock/zklock"
)

// ByField picks a mutex. Its name is format, with %s replaced by the value of a field of
// the request message. path is the field's name in the .proto file. A field of an inner
// message has a path with dots, such as "order.id". The field must be a string, a whole
// number, a bool or an enum; the value of an enum is its name.
//
// It is for methods whose requests have the field. Put it into a ByMethod with these
// methods, so that calls of others, such as health checks and reflection, need no lock.
//
// A call is refused with InvalidArgument, see Optional, if the field is not set. In proto3,
// only optional and oneof fields have presence; all others are not set if they are empty, 0 or
// false. If the request's type lacks the field, that is an error of the program, and the call
// fails with Internal. Streams need WithFirstMessage.
//
// A server inserts the client's value unchanged, so a client can choose any lock whose name
// begins and ends as format does; ByFields escapes it. ByField panics if c is nil, if path is malformed, if format
// does not contain %s exactly once, and if format cannot give a valid lock name.
func ByField(c *zklock.Client, path, format string) Pick {
	pick := protolock.ByField("interceptors: ByField", c, path, format)
	return func(_ context.Context, call Call) zklock.Acquirer { return pick(call.Request) }
}

// ByFields picks a mutex by several fields of the request message. Its name is format, with each %s
// replaced by the value of the field with the next path:
//
//	interceptors.ByFields(client, "events/%s/seats/%s", "event_id", "seat.number")
//
// Values are escaped, so that two calls have one lock only if all of their values are equal: a slash
// becomes %2F, and a percent sign %25. So does the character behind a %s, if another %s follows: with
// "%s:%s", a colon becomes %3A. It cannot be a letter or a digit.
//
// A call is refused with InvalidArgument if one of the fields is not set, or if the values make no
// valid lock name. Apart from that, ByFields is like ByField. It panics if c is nil, if a path is
// malformed, if format does not contain one %s for each path, if no character separates two of them,
// and if format cannot give a valid lock name.
func ByFields(c *zklock.Client, format string, paths ...string) Pick {
	pick := protolock.ByFields("interceptors: ByFields", c, format, paths)
	return func(_ context.Context, call Call) zklock.Acquirer { return pick(call.Request) }
}
