// Package compose tests zklock's gRPC interceptors together with other libraries that wrap
// calls: go-grpc-middleware's selector, recovery and retry, and otelgrpc's stats handlers.
// It is a separate module, so that the library does not depend on any of these.
package compose
