//go:build linux

package command_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// This test binary is also the command that runs under the lock. Variables of its environment
// say what it does.
const (
	roleEnv  = "ZKLOCK_TEST_ROLE"  // first, child or second
	fileEnv  = "ZKLOCK_TEST_FILE"  // the file to which all processes append
	traitEnv = "ZKLOCK_TEST_TRAIT" // of the first: letters, see first
)

// Traits of the first command.
const (
	stubborn = "s" // it ignores TERM
	parent   = "p" // it has two children
	heirs    = "h" // its children ignore TERM
)

// work does the work of a command. It reports false if this process is none.
func work() bool {
	role := os.Getenv(roleEnv)
	if role == "" {
		return false
	}
	file, err := os.OpenFile(os.Getenv(fileEnv), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(99)
	}
	switch role {
	case "second":
		second(file)
	default:
		first(file, role, os.Getenv(traitEnv))
	}
	return true
}

// first appends a line with its process, and then a line every ten milliseconds, until it is
// killed or the file with the suffix .end appears. Its children go on even then.
func first(file *os.File, role, traits string) {
	if strings.Contains(traits, stubborn) && role == "first" || strings.Contains(traits, heirs) && role == "child" {
		signal.Ignore(syscall.SIGTERM)
	}
	if strings.Contains(traits, parent) && role == "first" {
		for range 2 {
			child := exec.Command("/proc/self/exe")
			child.Env = append(os.Environ(), roleEnv+"=child")
			if err := child.Start(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(99)
			}
		}
	}
	pid := os.Getpid()
	fmt.Fprintf(file, "%s %d %s %s\n", role, pid, startOf(pid), os.Getenv("ZKLOCK_TOKEN"))
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		fmt.Fprintf(file, "beat %d\n", pid)
		if _, err := os.Stat(file.Name() + ".end"); err == nil && role == "first" {
			return
		}
	}
}

// second appends a line, and one for each process of the first command that is not dead.
func second(file *os.File) {
	fmt.Fprintf(file, "second %d 0 %s\n", os.Getpid(), os.Getenv("ZKLOCK_TOKEN"))
	text, err := os.ReadFile(file.Name())
	if err != nil {
		fmt.Fprintf(file, "overlap %v\n", err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] != "first" && fields[0] != "child" {
			continue
		}
		if pid, err := strconv.Atoi(fields[1]); err != nil || isAlive(pid, fields[2]) {
			fmt.Fprintf(file, "overlap %s\n", fields[1])
		}
	}
}

// statOf returns the fields of /proc/PID/stat after the process's name: the state first.
func statOf(pid int) []string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
}

// startOf returns when a process was started, in ticks: with its id it names a process.
func startOf(pid int) string {
	if stat := statOf(pid); len(stat) > 19 {
		return stat[19]
	}
	return "none"
}

// isAlive reports whether a process can still execute something.
func isAlive(pid int, start string) bool {
	stat := statOf(pid)
	return len(stat) > 19 && stat[19] == start && stat[0] != "Z" && stat[0] != "X"
}
