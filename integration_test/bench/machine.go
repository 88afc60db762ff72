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

// machine describes where the figures come from, in one line each.
func machine(b *runner, versions map[string]string) []string {
	head := []string{
		time.Now().UTC().Format("2006-01-02"),
		fmt.Sprintf("%s, %d cores for servers and clients together, %s", processor(), runtime.NumCPU(), kernel()),
		fmt.Sprintf("%s, go-zookeeper/zk %s", runtime.Version(), moduleVersion("github.com/go-zookeeper/zk")),
	}
	n := strings.Count(b.servers.hosts, ",") + 1
	if st, err := b.servers.status(); err == nil {
		how := "as configured there"
		if b.servers.own != nil {
			how = "fsync on, heap 512 MB"
		}
		head = append(head, fmt.Sprintf("ZooKeeper %s x%d (%s)", st.version, n, how))
	}
	for _, who := range []string{curator, etcd, redsync} {
		if v := versions[who]; v != "" {
			head = append(head, who+" "+v)
		}
	}
	return append(head, fmt.Sprintf("medians of %d turns of %v, after %v of warming up", b.rounds, b.length, b.warmed))
}

// processor is the processor's name, as far as the system tells.
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

// kernel is the system and its version, as far as the system tells.
func kernel() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS
	}
	return runtime.GOOS + " " + strings.TrimSpace(string(release))
}

// moduleVersion is the version of a module that this program was built with.
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

// shares are how the processors' time was spent so far, in the kernel's unit.
type shares struct{ all, stolen float64 }

// processorTime is read from the system; nothing where it does not tell.
func processorTime() (s shares) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return shares{}
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	for i, field := range strings.Fields(line) {
		if i == 0 || i > 8 { // its name, and guests, whose time is counted as others' already
			continue
		}
		n, _ := strconv.ParseFloat(field, 64) // they are numbers
		s.all += n
		if i == 8 {
			s.stolen = n
		}
	}
	return s
}

// since says how much of the time a host has given to other machines. Who needs
// the processor most loses most by that, even within a round.
func (s shares) since(before shares) string {
	if s.all == before.all {
		return ""
	}
	return fmt.Sprintf("%.0f%% of the processors' time was taken by the host", 100*(s.stolen-before.stolen)/(s.all-before.all))
}
