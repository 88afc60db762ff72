package ensemble

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// statusTimeout bounds the dial of one four-letter word, and its exchange. A busy machine takes seconds.
const statusTimeout = 5 * time.Second

// Role is a server's role in its ensemble.
type Role string

const (
	// Leader orders all changes and expires sessions.
	Leader Role = "leader"

	// Follower is a voting server that follows the leader.
	Follower Role = "follower"

	// Observer follows the leader without a vote.
	Observer Role = "observer"

	// Standalone is the only server of its ensemble.
	Standalone Role = "standalone"

	// NotServing is a server that runs and refuses its clients, because it looks
	// for a leader or catches up with one.
	NotServing Role = "not serving"
)

// Status is a server's reply to the four-letter word srvr.
type Status struct {
	// Role is the role that the server reports. A deposed leader may still report
	// Leader.
	Role Role

	// Version is the server's release, such as 3.9.5. It is empty for a server that does
	// not serve.
	Version string

	// Zxid is the last transaction that the server knows. Its upper half is the
	// epoch, which every new leader raises.
	Zxid int64
}

// FourLetter sends one of ZooKeeper's four-letter words and returns the reply. It returns
// an error if the server cannot be reached or does not reply within five seconds.
func (s *Server) FourLetter(word string) (string, error) {
	nc, err := net.DialTimeout("tcp", s.Addr(), statusTimeout)
	if err != nil {
		return "", fmt.Errorf("ensemble: %s to %v: %w", word, s, err)
	}
	defer nc.Close()
	if err := nc.SetDeadline(time.Now().Add(statusTimeout)); err != nil {
		return "", fmt.Errorf("ensemble: %s to %v: %w", word, s, err)
	}
	if _, err := io.WriteString(nc, word); err != nil {
		return "", fmt.Errorf("ensemble: %s to %v: %w", word, s, err)
	}
	answer, err := io.ReadAll(nc)
	if err != nil && len(answer) == 0 {
		return "", fmt.Errorf("ensemble: %s to %v: %w", word, s, err)
	}
	return string(answer), nil
}

// Status asks the server for its status. An error means that it did not reply, or that
// the reply could not be read.
func (s *Server) Status() (Status, error) {
	answer, err := s.FourLetter("srvr")
	if err != nil {
		return Status{}, err
	}
	st := Status{Role: NotServing}
	for line := range strings.Lines(answer) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Zookeeper version":
			st.Version, _, _ = strings.Cut(value, "-")
		case "Mode":
			st.Role = Role(value)
		case "Zxid":
			if st.Zxid, err = strconv.ParseInt(value, 0, 64); err != nil {
				return Status{}, fmt.Errorf("ensemble: srvr to %v: zxid %q: %w", s, value, err)
			}
		}
	}
	return st, nil
}

// Role asks the server for its role. It returns the errors of Status.
func (s *Server) Role() (Role, error) {
	st, err := s.Status()
	return st.Role, err
}

// Stats asks the server for its counters and gauges (the four-letter word mntr). The keys
// are ZooKeeper's names without the prefix zk_: packets_received, packets_sent,
// watch_count, znode_count, ephemerals_count, num_alive_connections,
// outstanding_requests and so on. Values that are not numbers are left out.
func (s *Server) Stats() (map[string]float64, error) {
	answer, err := s.FourLetter("mntr")
	if err != nil {
		return nil, err
	}
	stats := make(map[string]float64)
	lines := bufio.NewScanner(strings.NewReader(answer))
	for lines.Scan() {
		key, value, ok := strings.Cut(lines.Text(), "\t")
		if !ok {
			continue
		}
		if n, err := strconv.ParseFloat(value, 64); err == nil {
			stats[strings.TrimPrefix(key, "zk_")] = n
		}
	}
	if len(stats) == 0 {
		return nil, fmt.Errorf("ensemble: mntr to %v: %s", s, strings.TrimSpace(answer))
	}
	return stats, nil
}
