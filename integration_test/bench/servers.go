package main

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

// servers is the ensemble that the contestants use.
type servers struct {
	hosts string
	own   *ensemble.Ensemble // nil if the servers existed already
}

// production are options that change the ensemble package's servers, which are made for
// tests, into servers as in production: acknowledged writes are on disk, the code is
// compiled by all compiler stages, and the memory is large enough.
var production = []string{
	"-Dzookeeper.forceSync=yes", "-Dzookeeper.preAllocSize=65536",
	"-Xmx512m", "-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC",
}

// serve starts n servers, or uses those at hosts if hosts is not empty.
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
		_ = s.own.Close() // an error concerns temporary files only: the servers are killed
	}
}

// status is the sum of the servers' replies to the four-letter word srvr.
type status struct {
	version  string
	received float64 // packets of all servers together
	sent     float64 // packets of all servers together
	zxid     float64 // the newest of all servers
}

// status asks every server for its status.
func (s *servers) status() (status, error) {
	var all status
	for addr := range strings.SplitSeq(s.hosts, ",") {
		answer, err := srvr(addr)
		if err != nil {
			return status{}, fmt.Errorf("srvr to %s: %w", addr, err)
		}
		for line := range strings.Lines(answer) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			n, _ := strconv.ParseInt(value, 0, 64) // 0 for values that are not numbers, which are not used
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

// srvr sends the four-letter word srvr, the only one that servers allow by default.
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
