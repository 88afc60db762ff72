// Package compose shows in its tests that zklock's gRPC interceptors go together
// with what others put around calls: go-grpc-middleware's selector and recovery,
// and otelgrpc's stats handlers. It is a module of its own, so that the library
// does not depend on any of these.
package compose
