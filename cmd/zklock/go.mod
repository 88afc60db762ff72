module github.com/zklock/go-zklock/cmd/zklock

go 1.25.0

require (
	github.com/spf13/cobra v1.10.2
	github.com/zklock/go-zklock v0.0.0
	github.com/zklock/go-zklock/contrib/locktest v0.0.0
)

require (
	github.com/go-zookeeper/zk v1.0.4 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
)
