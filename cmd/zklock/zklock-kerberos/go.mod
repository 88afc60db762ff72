module github.com/zklock/go-zklock/cmd/zklock/zklock-kerberos

go 1.26.0

require (
	github.com/zklock/go-zklock/cmd/zklock v0.0.0
	github.com/zklock/go-zklock/contrib/kerberos v0.0.0
)

require (
	github.com/go-zookeeper/zk v1.0.4 // indirect
	github.com/hashicorp/go-uuid v1.0.3 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/jcmturner/aescts/v2 v2.0.0 // indirect
	github.com/jcmturner/dnsutils/v2 v2.0.0 // indirect
	github.com/jcmturner/gofork v1.7.6 // indirect
	github.com/jcmturner/gokrb5/v8 v8.4.4 // indirect
	github.com/jcmturner/rpc/v2 v2.0.3 // indirect
	github.com/spf13/cobra v1.10.2 // indirect
	github.com/spf13/pflag v1.0.9 // indirect
	github.com/zklock/go-zklock v0.0.0 // indirect
	github.com/zklock/go-zklock/contrib/locktest v0.0.0 // indirect
	golang.org/x/crypto v0.57.0 // indirect
	golang.org/x/net v0.60.0 // indirect
)

replace (
	github.com/zklock/go-zklock => ../../..
	github.com/zklock/go-zklock/cmd/zklock => ..
	github.com/zklock/go-zklock/contrib/kerberos => ../../../contrib/kerberos
	github.com/zklock/go-zklock/contrib/locktest => ../../../contrib/locktest
)
