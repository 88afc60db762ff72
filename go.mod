module github.com/zklock/go-zklock

go 1.25.0

require github.com/go-zookeeper/zk v1.0.4
