//go:build unix

package run

import "syscall"

// change is a change of a child of this process: it has ended, or was stopped.
type change struct {
	pid    int
	status syscall.WaitStatus
}

// reap waits for the children of this process, until there are none, and sends each change.
// If the wrapper is the first process of a container, its children include orphans.
//
// No other code of the process waits for a child. The channel is unbuffered; done ends the
// goroutine's wait for a receiver.
func reap(changes chan<- change, done <-chan struct{}) {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			return
		}
		select {
		case changes <- change{pid, status}:
		case <-done:
			return
		}
	}
}
