// Package interceptors has the names of the real one that the tests call.
package interceptors

import (
	"context"

	"google.golang.org/grpc"

	"github.com/zklock/go-zklock/zklock"
)

type Call struct{ Method string }

type Pick = func(ctx context.Context, call Call) zklock.Acquirer

type Option interface{ apply() }

func UnaryServerInterceptor(pick Pick, opts ...Option) grpc.UnaryServerInterceptor { return nil }
