package memcontrol

import (
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
)

// Port is the side of an ensemble's servers that speaks with clients. Package internal/testkit/wire
// puts ZooKeeper's protocol in front of it.
type Port interface {
	// Open keeps the ensemble's servers at work, as if it always had a client, until the
	// function that it returns is called.
	Open() (rest func())

	// Server returns whether a server accepts connections: cut means that clients hear nothing
	// from it, refused that it is down. mode is its role in ZooKeeper's words; "" if it serves no
	// clients now.
	Server(server int) (mode string, cut, refused bool)

	// Attach begins a client's handshake with a server, over a connection on which messages take
	// no time. Cuts, holds and KillConnection apply to it, by the id of its session.
	Attach(server int, h Hello, c Client) Link
}

// Hello is a client's part of a handshake.
type Hello struct {
	Session  int64 // 0 for a new one
	Password string
	Seen     int64 // the newest zxid that the client has seen
	Timeout  time.Duration
	Foreign  bool // another client has opened the session: cuts around that are around the other one
}

// Client receives what a server sends, in order. Its methods are called with the ensemble locked. So
// they must not block, and must not use the ensemble.
type Client interface {
	// Welcome is the answer to the Hello. A session of 0 means that the session has expired.
	Welcome(session int64, password string, timeout time.Duration)

	// Answer is the answer to the oldest request that has none yet.
	Answer(Answer)

	// Event is the event of a watch.
	Event(path string, event driver.EventType)

	// Closed ends the connection. reset means that it broke, and that nothing more arrives.
	Closed(reset bool)
}

// Link is a connection of a Client.
type Link interface {
	// Send sends a request. The link keeps r.
	Send(r Request)

	// Close closes the client's end.
	Close()
}

// RequestKind is the kind of a Request.
type RequestKind uint8

// The kinds of requests that a server executes.
const (
	Write    RequestKind = iota // Ops has one operation
	Multi                       // Ops has any number of them
	Get                         // the data and the Stat of Path
	Children                    // the names and the Stat
	Exists                      // the Stat
	Sync
	Ping
	SetWatches // of Watches, for changes after Seen
	Close      // the end of the session
	Auth       // User and Password of the scheme digest
)

// Request is what a client asks a server for.
type Request struct {
	Kind           RequestKind
	Path           string
	Watch          bool // Get, Children and Exists arm a watch
	Ops            []driver.Op
	Seen           int64
	Watches        [3][]string // paths of nodes that exist, of those that are missing, and of those whose children count
	User, Password string
}

// Answer is a server's answer to a Request.
type Answer struct {
	Zxid    int64
	Err     error
	Failed  int // the operation that Err is of, in a transaction; -1 if it is that of none
	Node    driver.Node
	Names   []string
	Results []driver.OpResult
}
