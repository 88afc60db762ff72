package sessiondir

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// process identifies a process of a machine, also after its number has been used again.
type process struct {
	PID       int
	Start     uint64 // in clock ticks since the machine's boot
	Namespace string // of the PID
	Boot      string // the machine's boot id
}

// self returns this process.
func self() (process, error) {
	p := process{PID: os.Getpid()}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return process{}, err
	}
	p.Boot = strings.TrimSpace(string(boot))
	if p.Namespace, err = os.Readlink("/proc/self/ns/pid"); err != nil {
		return process{}, err
	}
	st, err := readStatus("self")
	if err != nil {
		return process{}, err
	}
	p.Start = st.start
	// A namespace of PIDs may have the /proc of its parent, where this PID is another process.
	if st, err := readStatus(strconv.Itoa(p.PID)); err != nil || st.start != p.Start {
		return process{}, errors.New("/proc shows another namespace of PIDs than this process has: mount the one of its own")
	}
	return p, nil
}

// exists reports whether the process still runs, for this process, whose identity is me. A process of
// another namespace of PIDs cannot be seen: it counts as gone. A process that the kernel has
// begun to end runs no code of its own, so it is gone, too.
func (p process) exists(me process) (bool, error) {
	if p.Namespace != me.Namespace {
		return false, nil
	}
	st, err := readStatus(strconv.Itoa(p.PID))
	if errors.Is(err, os.ErrNotExist) || err == nil && st.start != p.Start {
		return false, nil
	}
	return !st.ends, err
}

// status is what /proc says of a process.
type status struct {
	start uint64
	ends  bool // it is dead, a zombie, or the kernel ends it
}

// exiting is the kernel's flag for a process that ends: PF_EXITING.
const exiting = 0x4

func readStatus(pid string) (status, error) {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		// A process that has ended between open and read.
		if strings.Contains(err.Error(), "no such process") {
			err = os.ErrNotExist
		}
		return status{}, err
	}
	// The second field is the name in parentheses, which may have any characters.
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	const state, flags, start = 3 - 3, 9 - 3, 22 - 3 // by the numbers in proc(5)
	if len(fields) <= start {
		return status{}, fmt.Errorf("/proc/%s/stat has %d fields", pid, len(fields))
	}
	mask, err := strconv.ParseUint(string(fields[flags]), 10, 64)
	if err != nil {
		return status{}, fmt.Errorf("/proc/%s/stat: flags: %w", pid, err)
	}
	ticks, err := strconv.ParseUint(string(fields[start]), 10, 64)
	if err != nil {
		return status{}, fmt.Errorf("/proc/%s/stat: start: %w", pid, err)
	}
	return status{start: ticks, ends: mask&exiting != 0 || bytes.ContainsAny(fields[state], "ZXx")}, nil
}
