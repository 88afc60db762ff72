package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// startTimeout is the longest time that a server may take until it answers.
const startTimeout = 30 * time.Second

// pair has the ports of a server: that for clients, and that for other servers, if the library's
// servers know each other.
type pair struct{ clients, peers int }

// serve runs n servers until in ends. When they answer, serve writes their addresses and
// the versions to out.
func serve(ctx context.Context, p peer, dir string, n int, in io.Reader, out io.Writer) error {
	binary, err := exec.LookPath(p.binary)
	if err != nil {
		return fmt.Errorf("no %s found: %w: install it, or use make bench-peers, which unpacks it", p.binary, err)
	}
	ports, err := freePorts(n)
	if err != nil {
		return err
	}
	var servers []*server
	defer func() {
		for _, s := range servers {
			s.kill()
		}
	}()
	var addrs []string
	for i := range ports {
		data := filepath.Join(dir, fmt.Sprintf("%s-%d", p.binary, i))
		s, err := startServer(ctx, binary, p.args(data, ports, i), dir)
		if err != nil {
			return err
		}
		servers = append(servers, s)
		addrs = append(addrs, fmt.Sprintf("127.0.0.1:%d", ports[i].clients))
	}
	version := ""
	for i, s := range servers {
		if version, err = await(ctx, p, addrs[i], s.ended); err != nil {
			s.kill()
			return fmt.Errorf("%s does not serve: %w\n%s", p.binary, err, s.log.Bytes())
		}
	}
	fmt.Fprintf(out, "serving %s %s on %s %s (%s)\n", strings.Join(addrs, ","), moduleVersion(p.module), p.binary, version, p.comment)
	_, err = io.Copy(io.Discard, in)
	return err
}

// server is a running server.
type server struct {
	cmd   *exec.Cmd
	log   bytes.Buffer // complete when the server has ended
	ended chan struct{}
}

func startServer(ctx context.Context, binary string, args []string, dir string) (*server, error) {
	s := &server{cmd: exec.CommandContext(ctx, binary, args...), ended: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr, s.cmd.Dir = &s.log, &s.log, dir
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = s.cmd.Wait() // always an error: the server is killed at the end
		close(s.ended)
	}()
	return s, nil
}

// kill ends the server, and waits for its end.
func (s *server) kill() {
	_ = s.cmd.Process.Kill() // an error means that it has ended already
	<-s.ended
}

// await asks a server until it answers, and returns its version.
func await(ctx context.Context, p peer, addr string, ended <-chan struct{}) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if version, err = p.ready(ctx, addr); err == nil {
			return version, nil
		}
		select {
		case <-tick.C:
		case <-ended:
			return "", errors.New("the server has ended")
		case <-ctx.Done():
			return "", err
		}
	}
}

// freePorts returns ports for n servers that no process uses at the moment.
func freePorts(n int) (ports []pair, err error) {
	var free []int
	for range 2 * n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		free = append(free, l.Addr().(*net.TCPAddr).Port)
	}
	for both := range slices.Chunk(free, 2) {
		ports = append(ports, pair{clients: both[0], peers: both[1]})
	}
	return ports, nil
}

// moduleVersion returns the version of a library that this program was built with.
func moduleVersion(path string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == path {
				return m.Version
			}
		}
	}
	return "(unknown version)"
}
