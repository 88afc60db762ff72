//go:build unix && !linux

package run

import "syscall"

// stopSignal is the signal that the wrapper sends to itself to stop. TTIN does what TSTP does,
// and is never caught.
const stopSignal = syscall.SIGTTIN

// disposition is what a signal does to this process.
type disposition struct{}

// setDisposition does nothing. Once TSTP was caught, it stops the wrapper only while there is a
// command: package signal leaves its handler in place.
func setDisposition(disposition) disposition { return disposition{} }
