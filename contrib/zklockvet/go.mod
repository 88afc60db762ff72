module github.com/zklock/go-zklock/contrib/zklockvet

go 1.26.0

require golang.org/x/tools v0.52.0

require golang.org/x/sync v0.24.0 // indirect
