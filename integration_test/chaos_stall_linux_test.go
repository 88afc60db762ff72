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

// stallLog stops the thread of a ZooKeeper server that writes its transaction
// log, and no other, as a disk does that takes its time: what the server has to
// acknowledge waits, what it answers from memory does not. It takes the right to
// trace one's own child processes.
func stallLog(pid int, d time.Duration) error {
	tid, err := threadOf(pid, "SyncThread")
	if err != nil {
		return err
	}
	// A thread is let go by the thread that stopped it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := syscall.PtraceAttach(tid); err != nil {
		return fmt.Errorf("attach to the log's thread of %d: %w", pid, err)
	}
	var status syscall.WaitStatus
	const all = 0x40000000 // __WALL: threads, too
	_, err = syscall.Wait4(tid, &status, all, nil)
	<-time.After(d)
	return errors.Join(err, syscall.PtraceDetach(tid))
}

// threadOf is the newest thread of a process whose name begins so: a server that
// was in another role before may still have that role's.
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
		return 0, fmt.Errorf("process %d has no thread named %s", pid, name)
	}
	return tid, nil
}
