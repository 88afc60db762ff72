// Package recorder writes the calls of a program's functions to the standard error. Package layers adds it to the
// module that it walks through, and a call of Enter to each function.
package recorder

import (
	"bytes"
	"os"
	"runtime"
)

// Enter writes "call", the number of the goroutine, the number of the one that started it, and the function.
func Enter(function string) {
	stack := make([]byte, 1<<16)
	stack = stack[:runtime.Stack(stack, false)]
	self, _, _ := bytes.Cut(bytes.TrimPrefix(stack, []byte("goroutine ")), []byte(" "))
	by := []byte("0")
	if at := bytes.LastIndex(stack, []byte(" in goroutine ")); at >= 0 {
		by, _, _ = bytes.Cut(stack[at+len(" in goroutine "):], []byte("\n"))
	}
	_, _ = os.Stderr.WriteString("call " + string(self) + " " + string(by) + " " + function + "\n")
}
