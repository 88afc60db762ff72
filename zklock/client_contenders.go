package zklock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zklock/go-zklock/zklock/internal/errs"
	"github.com/zklock/go-zklock/zklock/internal/place"
	"github.com/zklock/go-zklock/zklock/internal/queue"
)

// Contenders returns the holders and the waiters of a name, in the order of the queue, as of a
// moment during the call. It returns none for a name that is not in use. It lists the queue and
// reads each contender's node, several at a time; contenders that leave before they are read are
// left out. connect_timeout bounds the wait for a session, and ctx bounds the whole call.
//
// For contenders of another dialect only Node, Mode, Held, Foreign, Session and Zxid are
// set. Their Held follows the rules of their own recipe, which ignores the nodes of others.
func (c *Client) Contenders(ctx context.Context, name string) (found []Contender, err error) {
	defer annotate(&err, "contenders", queue.Truncate(name, queue.MaxName))
	err = operate(ctx, c, name, func(ctx context.Context, z place.Znode) error {
		q, err := z.Contenders(ctx)
		found = rank(q)
		return err
	})
	return found, err
}

// rank puts the contenders of all dialects into one order. Their sequence numbers come from one
// counter, that of the lock's znode. Each recipe decides among its own nodes which of them hold.
func rank(queued place.Roster) []Contender {
	var found []Contender
	seqs := make(map[string]int64) // by their nodes
	for _, same := range queued {
		held := queue.Holders(place.Nodes(same))
		for i, e := range same {
			c := nodeOf(e)
			if c.Foreign = e.Foreign; !c.Foreign {
				c = contenderOf(e)
			}
			c.Held = held[i]
			found, seqs[c.Node] = append(found, c), e.Seq
		}
	}
	slices.SortStableFunc(found, func(a, b Contender) int { return cmp.Compare(seqs[a.Node], seqs[b.Node]) })
	return found
}

// Break deletes a contender's node from the queue of a name, as a last resort of an operator. node
// is the Node of a [Contender]. Break does not keep exclusion: a holder that still runs loses the
// lock, but its Done closes only after another client may have been granted the lock. Until its
// client knows, for a sixth of the session timeout after the grant at most while it is connected,
// it may even pass the deleted node on inside its process, with a [Token] smaller than that of the
// next holder; docs/guarantees.md has the limits. A waiter queues again at the end. If the queue
// does not have the node, the error matches [driver.ErrNoNode].
//
// node may be followed by "@" and the contender's Zxid in hexadecimal, as the command zklock
// prints it: fmt.Sprintf("%s@%#x", c.Node, c.Zxid). Then nothing is deleted, and the error
// matches driver.ErrNoNode, if the queue has another node with this name by now.
//
// [Client.Revoke] is the gentle way.
func (c *Client) Break(ctx context.Context, name, node string) (err error) {
	defer annotate(&err, "break", queue.Truncate(name, queue.MaxName))
	return change(ctx, c, name, node, place.Znode.Delete)
}

// Revoke asks the holder that has a queue node to give the lock back. node is as in
// [Client.Break], and reason is a text for the holder, which is cut at 256 bytes. Revoke writes
// the request into the node, so it needs the right WRITE there, and returns when the ensemble
// has confirmed it. If the queue does not have the node, the error matches [driver.ErrNoNode].
//
// The holder decides what to do. One that has acquired with [WithRevocable] learns of the
// request. Any other holder keeps the lock, and so does one that ignores the request: Break is
// for that. Once the holder's client has read the request, it does not pass the node on to
// other goroutines, does not let further readers of its process join, and does not keep the
// node after its use. A waiter is asked when it has become the holder.
//
// A contender of Curator gets the message of Curator's own Revoker, without the reason. That
// Revoker can revoke locks of zklock, too: the Revoked of a [Contender] is "__REVOKE__" then, and
// the node no longer shows which process holds the lock. Curator's LeaderSelector has the nodes of
// its mutex, but does not look for the message: it goes on leading, and its node no longer has the
// participant's id. For contenders of go-zookeeper, kazoo and Curator's LeaderLatch, which cannot
// be asked, the error matches [ErrConflict].
func (c *Client) Revoke(ctx context.Context, name, node, reason string) (err error) {
	defer annotate(&err, "revoke", queue.Truncate(name, queue.MaxName))
	return change(ctx, c, name, node, func(z place.Znode, ctx context.Context, node string, zxid int64) error {
		return z.Revoke(ctx, node, zxid, reason)
	})
}

// change runs an operation on the node of a contender, which the caller has named as in Break.
func change(ctx context.Context, c *Client, name, contender string, op func(z place.Znode, ctx context.Context, node string, zxid int64) error) error {
	return operate(ctx, c, name, func(ctx context.Context, z place.Znode) error {
		node, zxid, err := c.parseNode(contender)
		if err != nil {
			return err
		}
		return op(z, ctx, node, zxid)
	})
}

// parseNode parses NODE or NODE@ZXID. Without a ZXID it returns 0 for that. NODE alone never
// ends like that: it ends with a sequence number.
func (c *Client) parseNode(text string) (node string, zxid int64, err error) {
	isNode := func(node string) bool {
		_, other, ok := c.cfg.Place.Dialect.Parse(node)
		return !strings.Contains(node, "/") && (ok || other != nil)
	}
	if isNode(text) {
		return text, 0, nil
	}
	if at := strings.LastIndexByte(text, '@'); at > 0 && isNode(text[:at]) {
		if z, err := strconv.ParseUint(strings.TrimPrefix(text[at+1:], "0x"), 16, 63); err == nil && z > 0 {
			return text[:at], int64(z), nil
		}
	}
	return "", 0, fmt.Errorf("%w: %q is not the name of a queue node: pass the Node of a Contender that Contenders returned", errs.ErrConflict, text)
}

// operate runs an operator's operation on a name, and again on another session if the
// session ends. It begins with a Sync, because the operator may have seen on another server what
// the session's server does not know yet.
func operate(ctx context.Context, c *Client, name string, op func(ctx context.Context, z place.Znode) error) error {
	if err := operable(c, name); err != nil {
		return err
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	return onDesk(ctx, c, c.path(name), func(d *place.Desk) error {
		z := place.Znode{Desk: d, Path: c.path(name)}
		if err := z.Sync(ctx); err != nil {
			return err
		}
		return op(ctx, z)
	})
}

// operable returns why an operator's operation on a name is refused.
func operable(c *Client, name string) error {
	if c == nil || c.pool == nil {
		return errNoClient
	}
	return c.cfg.Place.Dialect.CheckName(name)
}

// onDesk runs an operation on the session of a path, and again on the next one if that session
// ends. It waits for each for connect_timeout.
func onDesk(ctx context.Context, c *Client, path string, op func(*place.Desk) error) error {
	for began := time.Now(); ; {
		patient, stop := c.pool.Patient(ctx, began)
		s, err := c.pool.Session(patient, path, 0)
		stop()
		if err != nil {
			return err
		}
		if err = op(s.Desk); !errors.Is(err, errs.ErrSessionOver) {
			return err
		}
		// The silence that has ended the session counts, too. But some time is left to open another
		// session: this process may have been stopped.
		for _, later := range []time.Time{s.Session.Answered(), time.Now().Add(-c.cfg.Place.ConnectTimeout * 9 / 10)} {
			if later.After(began) {
				began = later
			}
		}
	}
}
