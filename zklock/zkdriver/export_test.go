package zkdriver

import (
	"bufio"
	"context"
	"io"
	"net"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Authenticate is authenticate for tests. add replaces the client's AddAuth with the
// credentials.
func Authenticate(ctx context.Context, s driver.Session, add func() error) error {
	return s.(*session).authenticate(ctx, func(*zk.Conn) error { return add() })
}

// OpenConnectorTo opens a connector for a URL whose hosts are replaced by servers, as
// if their names had resolved to them.
func OpenConnectorTo(u driver.URL, servers ...string) (driver.Connector, error) {
	c, err := (Driver{}).OpenConnector(u)
	if err == nil {
		c.(*connector).config.servers = servers
		c.(*connector).config.names = newNames(servers, nil)
	}
	return c, err
}

// ReadHandshake is readHandshake for tests.
func ReadHandshake(r io.Reader) (frame []byte, timeout time.Duration, id int64, err error) {
	frame, resp, err := readHandshake(bufio.NewReader(r))
	return frame, resp.timeout, resp.sessionID, err
}

// ReadFrame is readFrame for tests. largest is the largest buffer that it passed to a
// single read.
func ReadFrame(r io.Reader) (frame []byte, largest int, err error) {
	m := &meter{r: r}
	frame, err = readFrame(bufio.NewReader(m), nil, maxFrame)
	return frame, m.largest, err
}

// meter records the largest buffer that was passed to a read.
type meter struct {
	r       io.Reader
	largest int
}

func (m *meter) Read(p []byte) (int, error) {
	m.largest = max(m.largest, len(p))
	return m.r.Read(p)
}

// CheckBody is checkBody for tests.
func CheckBody(opcode int32, frame []byte) ([]byte, error) { return checkBody(opcode, frame) }

// WatchChannels returns how many channels wait for events of a session's watches.
func WatchChannels(s driver.Session) (n int) {
	w := &s.(*session).watches
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, list := range w.armed {
		n += len(list)
	}
	return n
}

// NewDigestExchange makes an Exchange of DIGEST-MD5 for a service, with a nonce that is given.
func NewDigestExchange(user, password, uri, cnonce string) Exchange {
	return &digestExchange{user: user, password: driver.NewSecret(password), uri: uri, cnonce: cnonce}
}

// ParseDirectives is parseDirectives for tests.
func ParseDirectives(b []byte) (map[string]string, error) { return parseDirectives(b) }

// ErrNotZooKeeper means that the peer does not seem to be a ZooKeeper server.
var ErrNotZooKeeper = errNotZooKeeper

// SuperviseEndedClient starts the supervisor of a session whose client has ended, before the session
// has. stop ends it.
func SuperviseEndedClient() (stop func()) {
	s := newSession(&config{}, nil, &backoff{}, time.Second)
	s.quit.Do(func() { close(s.quitting) })
	events := make(chan zk.Event)
	close(events)
	go s.supervise(events)
	return func() {
		s.end()
		<-s.stopped
	}
}

// Unacknowledged is unacknowledged for tests.
func Unacknowledged(c net.Conn) bool { return unacknowledged(c) }
