package ensemble

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/zklock/go-zklock/internal/testkit/proxy"
)

// links are the proxies between the servers of an ensemble. Each ordered pair of servers
// has two: the first server dials one to reach the second's quorum port, and the other
// to reach its election port. The bytes that the first server sends go Up through these
// proxies, and Down through those of the reversed pair.
type links struct {
	direct bool // the ensemble has no proxies

	mu    sync.Mutex     // needed in newLinks, too: the first proxies run while it fills pairs
	pairs map[pair]*link // guarded by mu
}

type pair struct{ from, to int }

type link struct{ quorum, election *proxy.Proxy }

// leaderPatience is how long a proxy holds a follower's connection while the leader does
// not listen yet.
const leaderPatience = 5 * time.Second

func newLinks(servers []*Server, direct bool) (*links, error) {
	l := &links{direct: direct || len(servers) == 1, pairs: make(map[pair]*link)}
	if l.direct {
		return l, nil
	}
	for _, from := range servers {
		for _, to := range servers {
			if from == to {
				continue
			}
			if err := l.add(from, to); err != nil {
				l.close()
				return nil, err
			}
		}
	}
	return l, nil
}

// add starts the proxies from one server to another.
func (l *links) add(from, to *Server) error {
	// A leader listens on its quorum port only from when it begins to lead. Its
	// followers may dial it before that.
	quorum, err := proxy.Start(proxy.Config{Target: local(to.ports.quorum), Patience: leaderPatience})
	if err != nil {
		return err
	}
	// On the election ports, the server with the greater id must dial the other one. If the
	// server with the smaller id dials, the other one closes the connection and dials back, to
	// the address in the first message that it received. So that address, too, must be a
	// proxy's.
	election, err := proxy.Start(proxy.Config{
		Target: local(to.ports.election),
		Rewrite: func(client io.Reader) io.Reader {
			return &introduction{from: client, address: l.between(to, from).election.Addr()}
		},
	})
	if err != nil {
		quorum.Close()
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pairs[pair{from.index, to.index}] = &link{quorum, election}
	return nil
}

// between returns the link from one server to another.
func (l *links) between(from, to *Server) *link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pairs[pair{from.index, to.index}]
}

// all returns the links of all pairs.
func (l *links) all() []*link {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.pairs))
}

// ports returns the ports that s dials to reach peer.
func (l *links) ports(s, peer *Server) (quorum, election int) {
	if s == peer || l.direct {
		return peer.ports.quorum, peer.ports.election
	}
	k := l.between(s, peer)
	return portOf(k.quorum.Addr()), portOf(k.election.Addr())
}

// proxies returns the proxies that carry the bytes from one server to another: those of
// connections that from dialled, and those of connections that from accepted.
func (l *links) proxies(from, to *Server) (dialled, accepted []*proxy.Proxy) {
	d, a := l.between(from, to), l.between(to, from)
	return []*proxy.Proxy{d.quorum, d.election}, []*proxy.Proxy{a.quorum, a.election}
}

func (l *links) close() {
	for _, k := range l.all() {
		k.quorum.Close()
		k.election.Close()
	}
}

// errNoLinks is the error of cutting a link of an ensemble without proxies.
var errNoLinks = errors.New("ensemble: no links to cut: it has one server, or DirectQuorum is set")

// Drop drops all bytes that from sends to to, until Heal. Neither server notices:
// connections stay open. Bytes that to sends still arrive. Drop returns an error if the
// ensemble has no proxies between its servers, or if both servers are the same.
func (e *Ensemble) Drop(from, to *Server) error {
	if e.links.direct {
		return errNoLinks
	}
	if from == to {
		return fmt.Errorf("ensemble: %v has no link to itself", from)
	}
	dialled, accepted := e.links.proxies(from, to)
	for _, p := range dialled {
		p.Blackhole(proxy.Up)
	}
	for _, p := range accepted {
		p.Blackhole(proxy.Down)
	}
	return nil
}

// CutFromLeader drops all bytes that f and the present leader send each other, until
// Heal. f goes on answering the reads and pings of its clients until it has not heard
// from the leader for SyncLimit ticks. The leader goes on without f. CutFromLeader
// returns the errors of Leader and Drop.
func (e *Ensemble) CutFromLeader(f *Server) error {
	leader, err := e.Leader()
	if err != nil {
		return err
	}
	if err := e.Drop(f, leader); err != nil {
		return err
	}
	return e.Drop(leader, f)
}

// CutServer separates s from all its peers, until Heal. The peers notice at once: their
// ends of the connections are reset. If s was the leader, they elect another one without
// delay. s does not notice: if it leads, it goes on answering its clients as the leader
// until its followers have been silent for SyncLimit ticks. CutServer returns the errors
// of Drop.
func (e *Ensemble) CutServer(s *Server) error {
	for _, peer := range e.Servers() {
		if peer == s {
			continue
		}
		if err := e.Drop(s, peer); err != nil {
			return err
		}
		if err := e.Drop(peer, s); err != nil {
			return err
		}
		mine, theirs := e.links.proxies(s, peer)
		for _, p := range mine {
			p.KillEnd(proxy.Server)
		}
		for _, p := range theirs {
			p.KillEnd(proxy.Client)
		}
	}
	return nil
}

// Heal repairs all links. Connections that lost bytes are reset, so the servers
// find each other again at once.
func (e *Ensemble) Heal() {
	for _, k := range e.links.all() {
		k.quorum.Heal()
		k.election.Heal()
	}
}

// introduction is the stream of an election connection with a replaced address in the
// first message. That message has the protocol version, the server id, and a string
// with its length in front: the addresses of the sender's election port.
type introduction struct {
	from    io.Reader
	address string
	out     io.Reader // nil until the message has been read
}

// maxIntroduction is the largest accepted length of the addresses, in bytes. It is far
// more than any real one.
const maxIntroduction = 4 << 10

func (i *introduction) Read(b []byte) (int, error) {
	if i.out == nil {
		if err := i.rewrite(); err != nil {
			return 0, err
		}
	}
	return i.out.Read(b)
}

func (i *introduction) rewrite() error {
	head := make([]byte, 8+8+4)
	if _, err := io.ReadFull(i.from, head[:8]); err != nil {
		return err
	}
	if int64(binary.BigEndian.Uint64(head)) >= 0 {
		// A server before 3.5 sends its id only.
		i.out = io.MultiReader(bytes.NewReader(head[:8]), i.from)
		return nil
	}
	if _, err := io.ReadFull(i.from, head[8:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint32(head[16:])
	if n > maxIntroduction {
		return fmt.Errorf("ensemble: an election connection begins with an address of %d bytes, which is too long", n)
	}
	if _, err := io.CopyN(io.Discard, i.from, int64(n)); err != nil {
		return err
	}
	binary.BigEndian.PutUint32(head[16:], uint32(len(i.address)))
	i.out = io.MultiReader(bytes.NewReader(head), bytes.NewReader([]byte(i.address)), i.from)
	return nil
}

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// portOf is the port of an address that a listener returned.
func portOf(addr string) int {
	_, port, _ := net.SplitHostPort(addr)
	n, _ := strconv.Atoi(port)
	return n
}
