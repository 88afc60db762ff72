//go:build !unix

package cli

// subprocess does nothing: without run, no process needs it.
func subprocess() (code int, ran bool) { return 0, false }
