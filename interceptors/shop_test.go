package interceptors_test

import (
	"context"
	_ "embed"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// text is the message of all calls. ByField finds its field "value".
type text = wrapperspb.StringValue

// The methods of the service.
const (
	shopName     = "zklock.test.shop.v1.Shop"
	methodPay    = "/" + shopName + "/Pay"
	methodUpload = "/" + shopName + "/Upload"
	methodWatch  = "/" + shopName + "/Watch"
	methodChat   = "/" + shopName + "/Chat"
	methodRead   = "/" + shopName + "/Read"
	methodDeep   = "/" + shopName + "/Deep"
	methodBake   = "/" + shopName + "/Bake"
	methodFree   = "/" + shopName + "/Free"
)

//go:embed testdata/shop.txtpb
var shopProto []byte

// The descriptors of the services and messages, which generated code would register.
func init() {
	file := new(descriptorpb.FileDescriptorProto)
	if err := prototext.Unmarshal(shopProto, file); err != nil {
		panic(err)
	}
	register(file)
}

func register(file *descriptorpb.FileDescriptorProto) {
	f, err := protodesc.NewFile(file, protoregistry.GlobalFiles)
	if err != nil {
		panic(err)
	}
	if err := protoregistry.GlobalFiles.RegisterFile(f); err != nil {
		panic(err)
	}
}

// order returns a message with fields of every kind, from its text.
func order(t *testing.T, fields string) proto.Message {
	t.Helper()
	found, err := protoregistry.GlobalFiles.FindDescriptorByName("zklock.test.shop.v1.Order")
	if err != nil {
		t.Fatal(err)
	}
	m := dynamicpb.NewMessage(found.(protoreflect.MessageDescriptor))
	if err := prototext.Unmarshal([]byte(fields), m); err != nil {
		t.Fatal(err)
	}
	return m
}

// shopServer is a service with every kind of method.
type shopServer interface {
	Pay(context.Context, *text) (*text, error)
	Upload(grpc.ClientStreamingServer[text, text]) error
	Watch(*text, grpc.ServerStreamingServer[text]) error
	Chat(grpc.BidiStreamingServer[text, text]) error
}

// shopDesc is the description of Shop that generated code would have.
var shopDesc = grpc.ServiceDesc{
	ServiceName: shopName, HandlerType: (*shopServer)(nil), Metadata: "shop.proto",
	Methods: []grpc.MethodDesc{unary("Pay", shopServer.Pay), unary("Read", nil), unary("Deep", nil), unary("Bake", nil), unary("Free", nil)},
	Streams: []grpc.StreamDesc{
		{StreamName: "Upload", ClientStreams: true, Handler: func(s any, stream grpc.ServerStream) error {
			return s.(shopServer).Upload(&grpc.GenericServerStream[text, text]{ServerStream: stream})
		}},
		{StreamName: "Watch", ServerStreams: true, Handler: func(s any, stream grpc.ServerStream) error {
			in := new(text)
			if err := stream.RecvMsg(in); err != nil {
				return err
			}
			return s.(shopServer).Watch(in, &grpc.GenericServerStream[text, text]{ServerStream: stream})
		}},
		{StreamName: "Chat", ClientStreams: true, ServerStreams: true, Handler: func(s any, stream grpc.ServerStream) error {
			return s.(shopServer).Chat(&grpc.GenericServerStream[text, text]{ServerStream: stream})
		}},
	},
}

// unary describes a unary method. A method without a call is unimplemented.
func unary(name string, call func(shopServer, context.Context, *text) (*text, error)) grpc.MethodDesc {
	if call == nil {
		call = func(shopServer, context.Context, *text) (*text, error) {
			return nil, status.Error(codes.Unimplemented, name+" is not implemented")
		}
	}
	return grpc.MethodDesc{MethodName: name, Handler: func(s any, ctx context.Context, decode func(any) error, i grpc.UnaryServerInterceptor) (any, error) {
		in := new(text)
		if err := decode(in); err != nil {
			return nil, err
		}
		handle := func(ctx context.Context, in any) (any, error) { return call(s.(shopServer), ctx, in.(*text)) }
		if i == nil {
			return handle(ctx, in)
		}
		return i(ctx, in, &grpc.UnaryServerInfo{Server: s, FullMethod: "/" + shopName + "/" + name}, handle)
	}}
}

// shopClient calls the service.
type shopClient struct{ conn grpc.ClientConnInterface }

func newShop(conn grpc.ClientConnInterface) shopClient { return shopClient{conn} }

func (c shopClient) unary(ctx context.Context, method string, in *text) (*text, error) {
	out := new(text)
	if err := c.conn.Invoke(ctx, method, in, out); err != nil {
		return nil, err
	}
	return out, nil
}

func (c shopClient) Pay(ctx context.Context, in *text) (*text, error) {
	return c.unary(ctx, methodPay, in)
}

func (c shopClient) Bake(ctx context.Context, in *text) (*text, error) {
	return c.unary(ctx, methodBake, in)
}

func (c shopClient) stream(ctx context.Context, i int, method string) (*grpc.GenericClientStream[text, text], error) {
	s, err := c.conn.NewStream(ctx, &shopDesc.Streams[i], method)
	if err != nil {
		return nil, err
	}
	return &grpc.GenericClientStream[text, text]{ClientStream: s}, nil
}

func (c shopClient) Upload(ctx context.Context) (grpc.ClientStreamingClient[text, text], error) {
	return c.stream(ctx, 0, methodUpload)
}

func (c shopClient) Watch(ctx context.Context, in *text) (grpc.ServerStreamingClient[text], error) {
	s, err := c.stream(ctx, 1, methodWatch)
	if err != nil {
		return nil, err
	}
	if err := s.SendMsg(in); err != nil {
		return nil, err
	}
	return s, s.CloseSend()
}

func (c shopClient) Chat(ctx context.Context) (grpc.BidiStreamingClient[text, text], error) {
	return c.stream(ctx, 2, methodChat)
}
