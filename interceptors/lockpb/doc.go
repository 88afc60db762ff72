// Package lockpb contains the Go code of zklock/v1/lock.proto. Its method option declares what
// a service's methods lock, see interceptors.FromProto.
//
// To compile a .proto file that imports it, give protoc this folder:
//
//	protoc -I . -I "$(go list -mod=mod -f '{{.Dir}}' github.com/zklock/go-zklock/interceptors/lockpb)" --go_out=. --go_opt=paths=source_relative shop.proto
//
// With -mod=mod, go list adds this package's module to go.mod, where nothing imports the package yet;
// the generated code will. In a workspace, set GOWORK=off for it. protoc also needs
// google/protobuf/descriptor.proto. Its own releases have that file; on Debian and Ubuntu it is in
// libprotobuf-dev, which protobuf-compiler does not install.
package lockpb

// protoc 3.21 or later (Debian: protobuf-compiler) and
// google.golang.org/protobuf/cmd/protoc-gen-go at the version of go.mod.
//go:generate protoc -I . --go_out=. --go_opt=module=github.com/zklock/go-zklock/interceptors/lockpb zklock/v1/lock.proto
