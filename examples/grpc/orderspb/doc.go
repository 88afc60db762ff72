// Package orderspb is generated from orders.proto, the contract of the gRPC example.
package orderspb

//go:generate protoc -I . -I ../../../interceptors/lockpb --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative orders.proto
