module github.com/zklock/go-zklock/contrib/connectlock

go 1.26.0

require (
	connectrpc.com/connect v1.21.1
	github.com/zklock/go-zklock v0.0.0
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/go-zookeeper/zk v1.0.4 // indirect
	github.com/zklock/go-zklock/interceptors v0.0.0
)

replace github.com/zklock/go-zklock => ../..

replace github.com/zklock/go-zklock/interceptors => ../../interceptors
