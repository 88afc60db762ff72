// Package lockpb contains the Go code of zklock/v1/lock.proto. Its method option declares what
// a service's methods lock, see interceptors.FromProto.
//
// To compile a .proto file that imports it, give protoc this folder:
//
//	protoc -I "$(go list -f '{{.Dir}}' github.com/zklock/go-zklock/interceptors/lockpb)" ...
package lockpb

// protoc 3.21 or later (Debian: protobuf-compiler) and
// google.golang.org/protobuf/cmd/protoc-gen-go at the version of go.mod.
//go:generate protoc -I . --go_out=. --go_opt=module=github.com/zklock/go-zklock/interceptors/lockpb zklock/v1/lock.proto
