module github.com/zklock/go-zklock/contrib/locktest/workers

go 1.26.0

require (
	github.com/go-zookeeper/zk v1.0.4
	github.com/zklock/go-zklock v0.0.0
	github.com/zklock/go-zklock/contrib/locktest v0.0.0
)

require github.com/anishathalye/porcupine v1.3.1 // indirect

replace github.com/zklock/go-zklock => ../../..

replace github.com/zklock/go-zklock/contrib/locktest => ..
