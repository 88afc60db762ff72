package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// redis starts Redis servers that know nothing of each other. Each writes all changes to its disk before it
// answers: Redis's page on distributed locks has that, or a long pause, for servers that start again.
func redis(ctx context.Context, dir string, n int, o Options) (*Processes, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("no redis-server found: install the package redis-server")
	}
	ports, err := FreePorts(n)
	if err != nil {
		return nil, err
	}
	var commands []Command
	for i, port := range ports {
		home := filepath.Join(dir, fmt.Sprintf("redis-%d", i+1))
		if err := os.MkdirAll(home, 0o777); err != nil {
			return nil, err
		}
		commands = append(commands, Command{
			Path: path, Addr: fmt.Sprintf("127.0.0.1:%d", port), Log: filepath.Join(home, "log"), Ready: redisServes,
			Args: []string{
				"--bind", "127.0.0.1", "--port", fmt.Sprint(port), "--dir", home,
				"--save", "", "--appendonly", "yes", "--appendfsync", "always",
			},
		})
	}
	return started(ctx, dir, o, commands)
}

// redisServes reports whether a server answers a PING.
func redisServes(ctx context.Context, addr string) error {
	text, err := ask(ctx, addr, "PING\r\n", len("+PONG\r\n"))
	if err == nil && !strings.HasPrefix(text, "+PONG") {
		err = fmt.Errorf("it answers %.100q", text)
	}
	return err
}

// ask sends a text to a server and returns the answer: as many bytes as that, or all until the end of the
// connection if limit is 0.
func ask(ctx context.Context, addr, question string, limit int) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if deadline, ok := ctx.Deadline(); ok {
		if err := c.SetDeadline(deadline); err != nil {
			return "", err
		}
	}
	if _, err := io.WriteString(c, question); err != nil {
		return "", err
	}
	if limit > 0 {
		text := make([]byte, limit)
		_, err := io.ReadFull(c, text)
		return string(text), err
	}
	text, err := io.ReadAll(c)
	return string(text), err
}
