// Package grpc has the names of the real one that the tests call.
package grpc

import "context"

type Server struct{}

type ServerOption interface{ apply() }

type UnaryServerInfo struct{}

type UnaryHandler func(ctx context.Context, req any) (any, error)

type UnaryServerInterceptor func(ctx context.Context, req any, info *UnaryServerInfo, handler UnaryHandler) (any, error)

func UnaryInterceptor(i UnaryServerInterceptor) ServerOption { return nil }

func NewServer(opts ...ServerOption) *Server { return nil }

type ServerStream interface {
	Context() context.Context
	SendMsg(m any) error
}
