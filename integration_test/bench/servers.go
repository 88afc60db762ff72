package main

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/zklock/go-zklock/integration_test/ensemble"
)

// servers is the ensemble that the contestants use.
type servers struct {
	hosts string
	own   *ensemble.Ensemble // nil: it was there already
}

// production are the differences between the ensemble package's servers, which
// are made for tests, and servers that somebody relies on: what is acknowledged
// is on disk, the code is compiled as well as it can be, and there is room.
var production = []string{
	"-Dzookeeper.forceSync=yes", "-Dzookeeper.preAllocSize=65536",
	"-Xmx512m", "-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC",
}

// serve starts n servers, or takes those at hosts.
func serve(hosts string, n int) (*servers, error) {
	if hosts != "" {
		return &servers{hosts: hosts}, nil
	}
	e, err := ensemble.New(ensemble.Config{Servers: n, TickTime: 2 * time.Second, DirectQuorum: true, JavaOptions: production})
	if err != nil {
		return nil, err
	}
	return &servers{hosts: e.Hosts(), own: e}, nil
}

func (s *servers) close() {
	if s.own != nil {
		_ = s.own.Close() // it kills the servers; the data is in a temporary folder
	}
}

// status is what the servers' answers to srvr come to.
type status struct {
	version  string
	received float64 // packets, all servers together
	sent     float64
	zxid     float64 // the newest
}

// status asks every server.
func (s *servers) status() (status, error) {
	var all status
	for addr := range strings.SplitSeq(s.hosts, ",") {
		answer, err := srvr(addr)
		if err != nil {
			return status{}, fmt.Errorf("srvr to %s: %w", addr, err)
		}
		for line := range strings.Lines(answer) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			n, _ := strconv.ParseInt(value, 0, 64) // 0 for what is no number, which is not used
			switch key {
			case "Zookeeper version":
				all.version, _, _ = strings.Cut(value, "-")
				all.version = strings.TrimSuffix(all.version, ",")
			case "Received":
				all.received += float64(n)
			case "Sent":
				all.sent += float64(n)
			case "Zxid":
				all.zxid = max(all.zxid, float64(n))
			}
		}
	}
	return all, nil
}

// srvr sends the one four-letter word that every server allows by default.
func srvr(addr string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, 5*time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(conn, "srvr"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(conn)
	if len(answer) > 0 {
		err = nil
	}
	return string(answer), err
}
