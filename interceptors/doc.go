// Package interceptors holds a lock around gRPC calls: in all processes that use
// the same ensemble, calls that pick the same lock are served one after another.
//
//	pick := interceptors.ByField(client, "order_id", "orders/%s")
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(interceptors.UnaryServerInterceptor(pick)),
//		grpc.ChainStreamInterceptor(interceptors.StreamServerInterceptor(pick, interceptors.WithFirstMessage())))
package interceptors
