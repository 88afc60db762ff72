// Package shoppb is a service with every kind of method, for the tests of
// package interceptors.
package shoppb

//go:generate protoc -I . -I ../../lockpb --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative shop.proto
