package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// TestReflectionIsEnoughToCall does what grpcurl does: it asks the server for its
// contract, and calls it with messages that it builds from the contract.
func TestReflectionIsEnoughToCall(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-url", "mem://" + t.Name(), "-listen", "127.0.0.1:0"}, w)
		w.Close()
	}()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	var address string
	for lines := bufio.NewScanner(r); address == "" && lines.Scan(); {
		_, address, _ = strings.Cut(lines.Text(), "serving at ")
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	files := reflected(t, conn, "orders.v1.Orders")
	found, err := files.FindDescriptorByName("orders.v1.Orders.Pay")
	if err != nil {
		t.Fatal(err)
	}
	method := found.(protoreflect.MethodDescriptor)
	if options := fmt.Sprint(method.Options()); !strings.Contains(options, "orders/{order_id}") {
		t.Errorf("the contract does not say what Pay locks: %s", options)
	}
	call := func(request string) (*dynamicpb.Message, error) {
		in, out := dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output())
		if err := protojson.Unmarshal([]byte(request), in); err != nil {
			t.Fatal(err)
		}
		return out, conn.Invoke(ctx, "/orders.v1.Orders/Pay", in, out)
	}
	out, err := call(`{"orderId": "42"}`)
	if err != nil {
		t.Fatal(err)
	}
	if token := out.Get(method.Output().Fields().ByName("token")).String(); len(token) != 25 {
		t.Errorf("the receipt has token %q, want 25 characters", token)
	}
	if _, err := call(`{}`); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a call without an order: %v, want InvalidArgument", err)
	}
}

// reflected returns the contract of a service, which it asks the server for.
func reflected(t *testing.T, conn *grpc.ClientConn, service string) *protoregistry.Files {
	t.Helper()
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	err = stream.Send(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: service}})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var set descriptorpb.FileDescriptorSet
	for _, raw := range answer.GetFileDescriptorResponse().GetFileDescriptorProto() {
		var file descriptorpb.FileDescriptorProto
		if err := proto.Unmarshal(raw, &file); err != nil {
			t.Fatal(err)
		}
		set.File = append(set.File, &file)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
	return files
}
