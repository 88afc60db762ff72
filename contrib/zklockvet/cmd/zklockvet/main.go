// Command zklockvet finds mistakes in programs that use zklock:
//
//	go install github.com/zklock/go-zklock/contrib/zklockvet/cmd/zklockvet@latest
//	go vet -vettool=$(which zklockvet) ./...
//
// Go runs it for each package. An analyzer's name as a flag turns that one on and all others off;
// -outerctx=false turns one off. zklockvet help describes them.
package main

import (
	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/zklock/go-zklock/contrib/zklockvet"
)

func main() { unitchecker.Main(zklockvet.Analyzers()...) }
