module github.com/zklock/go-zklock/contrib/contention

go 1.26.0

require (
	github.com/google/pprof v0.0.0-20260802141513-ef3492d7dac3
	github.com/zklock/go-zklock v0.0.0
)

replace github.com/zklock/go-zklock => ../..
