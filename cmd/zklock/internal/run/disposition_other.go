//go:build unix && !linux

package run

import "syscall"

// stopSignal is the signal that the wrapper sends to itself to stop. TTIN does what TSTP does,
// and is never caught.
const stopSignal = syscall.SIGTTIN

// disposition is what a signal does to this process.
type disposition struct{}

// setDisposition does nothing on this system. So the handler of package signal stays once TSTP was
// caught, and from then on TSTP stops the wrapper only while it has a command.
func setDisposition(disposition) disposition { return disposition{} }
