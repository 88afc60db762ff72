module github.com/zklock/go-zklock/integration_test

go 1.26.0

require (
	github.com/go-zookeeper/zk v1.0.4
	github.com/zklock/go-zklock v0.0.0
	github.com/zklock/go-zklock/examples v0.0.0
	github.com/zklock/go-zklock/interceptors v0.0.0
	github.com/zklock/go-zklock/tracing v0.0.0
	go.opentelemetry.io/otel v1.47.0
	go.opentelemetry.io/otel/sdk v1.47.0
	go.opentelemetry.io/otel/sdk/metric v1.47.0
	go.opentelemetry.io/otel/trace v1.47.0
	golang.org/x/mod v0.42.0
	golang.org/x/sys v0.49.0
	google.golang.org/grpc v1.85.0
)

require (
	github.com/anishathalye/porcupine v1.3.1 // indirect
	github.com/hashicorp/go-uuid v1.0.3 // indirect
	github.com/jcmturner/aescts/v2 v2.0.0 // indirect
	github.com/jcmturner/dnsutils/v2 v2.0.0 // indirect
	github.com/jcmturner/gofork v1.7.6 // indirect
	github.com/jcmturner/gokrb5/v8 v8.4.4 // indirect
	github.com/jcmturner/rpc/v2 v2.0.3 // indirect
	golang.org/x/crypto v0.57.0 // indirect
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/go-logr/logr v1.4.4 // indirect
	github.com/go-logr/stdr v1.2.2 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/zklock/go-zklock/contrib/kerberos v0.0.0
	github.com/zklock/go-zklock/contrib/locktest v0.0.0
	go.opentelemetry.io/auto/sdk v1.2.1 // indirect
	go.opentelemetry.io/otel/log v1.47.0 // indirect
	go.opentelemetry.io/otel/metric v1.47.0 // indirect
	golang.org/x/net v0.60.0 // indirect
	golang.org/x/text v0.42.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260817212433-ac3dfec99bb1 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/zklock/go-zklock => ..

replace github.com/zklock/go-zklock/examples => ../examples

replace github.com/zklock/go-zklock/interceptors => ../interceptors

replace github.com/zklock/go-zklock/middleware/ginlock => ../middleware/ginlock

replace github.com/zklock/go-zklock/tracing => ../tracing

replace github.com/zklock/go-zklock/contrib/kerberos => ../contrib/kerberos

replace github.com/zklock/go-zklock/contrib/locktest => ../contrib/locktest
