module github.com/zklock/go-zklock/cmd/zklock/man

go 1.26.0

replace (
	github.com/zklock/go-zklock => ../../..
	github.com/zklock/go-zklock/cmd/zklock => ..
)

require (
	github.com/spf13/cobra v1.10.2
	github.com/zklock/go-zklock/cmd/zklock v0.0.0
)

require (
	github.com/cpuguy83/go-md2man/v2 v2.0.6 // indirect
	github.com/go-zookeeper/zk v1.0.4 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/russross/blackfriday/v2 v2.1.0 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	github.com/zklock/go-zklock v0.0.0 // indirect
	github.com/zklock/go-zklock/contrib/locktest v0.0.0 // indirect
	go.yaml.in/yaml/v3 v3.0.4 // indirect
)

replace github.com/zklock/go-zklock/contrib/locktest => ../../../contrib/locktest
