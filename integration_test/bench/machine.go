package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// machine describes the machine and the versions, each in one line. counts are the numbers of
// servers.
func machine(b *runner, versions map[string]string, counts ...int) []string {
	head := []string{
		time.Now().UTC().Format("2006-01-02"),
		fmt.Sprintf("%s, %d cores for servers and clients together, %s", processor(), runtime.NumCPU(), kernel()),
		fmt.Sprintf("%s, go-zookeeper/zk %s", runtime.Version(), moduleVersion("github.com/go-zookeeper/zk")),
	}
	times := fmt.Sprintf("x%d", counts[0])
	for _, n := range counts[1:] {
		times += fmt.Sprintf(" and x%d", n)
	}
	if st, err := b.servers.status(); err == nil {
		how := "as configured there"
		if b.servers.own != nil {
			how = "fsync on, heap 512 MB"
		}
		head = append(head, fmt.Sprintf("ZooKeeper %s %s (%s)", st.version, times, how))
	}
	for _, who := range []string{curator, kazooLock, etcd, redsync} {
		if v := versions[who]; v != "" {
			head = append(head, who+" "+v)
		}
	}
	return head
}

// method describes how cycles are measured.
func (b *runner) method(runs int) string {
	turns := fmt.Sprintf("%d turns", b.rounds)
	if runs > 1 {
		turns = fmt.Sprintf("%d turns in each of %d runs", b.rounds, runs)
	}
	return fmt.Sprintf("medians of %s of %v, after %v of warming up", turns, b.length, b.warmed)
}

// processor returns the processor's name, or its architecture if the system has no name.
func processor() string {
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for lines := bufio.NewScanner(bytes.NewReader(info)); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}

// kernel returns the system's name, and its version if the system has that in a file.
func kernel() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS
	}
	return runtime.GOOS + " " + strings.TrimSpace(string(release))
}

// moduleVersion returns the version of a module that this program was built with.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return "(unknown)"
}

// shares has the processors' time since the start of the system, in the kernel's unit, and
// the part of it that the host of a virtual machine has taken.
type shares struct{ all, stolen float64 }

// processorTime reads the shares from the system. They are 0 on systems without /proc/stat.
func processorTime() (s shares) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return shares{}
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	for i, field := range strings.Fields(line) {
		if i == 0 || i > 8 { // the line's name, and the time of guests, which is part of other fields
			continue
		}
		n, _ := strconv.ParseFloat(field, 64) // the kernel writes numbers only
		s.all += n
		if i == 8 {
			s.stolen = n
		}
	}
	return s
}

// since describes how much of the processors' time since before the host has taken. The
// contestant that needs the processor most loses most by that, even within a round.
func (s shares) since(before shares) string {
	if s.all == before.all {
		return ""
	}
	return fmt.Sprintf("%.0f%% of the processors' time was taken by the host", 100*(s.stolen-before.stolen)/(s.all-before.all))
}
