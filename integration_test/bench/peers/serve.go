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
	"time"
)

// startTimeout is the longest time that a server may take until it answers.
const startTimeout = 30 * time.Second

// serve runs a server until in ends. When the server answers, serve writes its address and
// the versions to out.
func serve(ctx context.Context, p peer, dir string, in io.Reader, out io.Writer) error {
	binary, err := exec.LookPath(p.binary)
	if err != nil {
		return fmt.Errorf("no %s found: %w: install it, or use make bench-peers, which unpacks it", p.binary, err)
	}
	ports, err := freePorts(2)
	if err != nil {
		return err
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, p.args(filepath.Join(dir, p.binary), ports)...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = &log, &log, dir
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // always an error: serve kills the server at the end
		close(ended)
	}()
	defer func() {
		_ = cmd.Process.Kill() // an error means that it has ended already
		<-ended
	}()
	addr := fmt.Sprintf("127.0.0.1:%d", ports[0])
	version, err := await(ctx, p, addr, ended)
	if err != nil {
		_ = cmd.Process.Kill() // see above
		<-ended
		return fmt.Errorf("%s does not serve: %w\n%s", p.binary, err, log.Bytes())
	}
	fmt.Fprintf(out, "serving %s %s on %s %s (%s)\n", addr, moduleVersion(p.module), p.binary, version, p.comment)
	_, err = io.Copy(io.Discard, in)
	return err
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

// freePorts returns ports that no process uses at the moment.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
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
