package integration_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stallLog stops the thread of a ZooKeeper server that writes its transaction log, and no
// other thread. This has the effect of a slow disk: transactions that the server has to
// acknowledge wait, replies from its memory do not. It needs the right to trace child
// processes.
func stallLog(pid int, d time.Duration) error {
	tid, err := threadOf(pid, "SyncThread")
	if err != nil {
		return err
	}
	// Only the thread that attached to another thread can detach from it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := syscall.PtraceAttach(tid); err != nil {
		return fmt.Errorf("attach to the log thread of process %d: %w", pid, err)
	}
	var status syscall.WaitStatus
	const all = 0x40000000 // __WALL: wait for threads, too
	_, err = syscall.Wait4(tid, &status, all, nil)
	<-time.After(d)
	return errors.Join(err, syscall.PtraceDetach(tid))
}

// errNoThread means that a server has no log thread at the moment: it is between two roles.
var errNoThread = errors.New("no such thread")

// threadOf returns the newest thread of a process whose name begins with name. A server
// that had another role before may still have that role's thread, too.
func threadOf(pid int, name string) (tid int, err error) {
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", pid))
	if err != nil {
		return 0, err
	}
	for _, path := range names {
		text, err := os.ReadFile(path)
		if err == nil && strings.HasPrefix(string(text), name) {
			n, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			if err != nil {
				return 0, err
			}
			tid = max(tid, n)
		}
	}
	if tid == 0 {
		return 0, fmt.Errorf("process %d, thread %s: %w", pid, name, errNoThread)
	}
	return tid, nil
}
