package interceptors

import (
	"context"

	"google.golang.org/grpc"

	"github.com/zklock/go-zklock/interceptors/protolock"
	"github.com/zklock/go-zklock/zklock"
)

// FromProto picks the lock that a method's declaration names, in the option of
// zklock/v1/lock.proto:
//
//	rpc Pay(PayRequest) returns (PayReply) {
//	  option (zklock.v1.lock) = { name: "orders/{order_id}" mode: EXCLUSIVE wait: "2s" };
//	}
//
// A field in braces follows the rules of ByField, and several fields those of ByFields: the values
// of "events/{event_id}/seats/{seat}" are escaped. A stream whose name has such fields needs
// WithFirstMessage. Methods without the option need no lock. Nor do those of services
// that are not in protoregistry.GlobalFiles, where generated code registers. If a
// declaration is wrong, every call of the method fails with Internal, and is logged at
// level Error. CheckProto finds such declarations.
//
// FromProto panics if c is nil.
func FromProto(c *zklock.Client) Pick {
	declarations := protolock.FromProto("interceptors", c)
	return func(_ context.Context, call Call) zklock.Acquirer {
		return declarations.Pick(call.FullMethod, call.Request)
	}
}

// CheckProto checks the declarations of all services that are registered with a server.
// Call it at the start of a program. It returns nil, or an error for each wrong declaration: an
// invalid name, two fields with no separating character between them, a field that the request
// lacks, a wait that is not a duration, or a mode that contradicts the permits.
func CheckProto(server interface {
	GetServiceInfo() map[string]grpc.ServiceInfo
}) error {
	var methods []string
	for service, info := range server.GetServiceInfo() {
		for _, method := range info.Methods {
			methods = append(methods, "/"+service+"/"+method.Name)
		}
	}
	return protolock.Check("interceptors", methods)
}
