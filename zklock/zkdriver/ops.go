package zkdriver

import (
	"context"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/zklock/go-zklock/zklock/driver"
)

const (
	// maxRequest is the largest request that is sent. It is the servers' default
	// limit (jute.maxbuffer, 1 MiB less one byte) minus some room. A server answers a
	// larger request by cutting the connection, which would look like an unknown
	// outcome at every attempt.
	maxRequest = 1<<20 - 4<<10

	// requestHeaderLen is the length of the xid and the operation code.
	requestHeaderLen = 4 + 4
)

// pathSize returns the size of a request that consists of a path only.
func pathSize(path string) int { return requestHeaderLen + 4 + len(path) }

// createSize returns the size of a request that creates a znode. Within a transaction
// the request has the same size, less its header.
func createSize(path string, data []byte, acl []driver.ACL) int {
	n := pathSize(path) + 4 + len(data) + 4 + 4
	for _, a := range acl {
		n += 4 + 4 + len(a.Scheme) + 4 + len(a.ID)
	}
	return n
}

// Create implements driver.Session.
func (s *session) Create(ctx context.Context, path string, data []byte, mode driver.Mode, acl []driver.ACL) (string, error) {
	return s.create(ctx, path, data, mode, acl, nil)
}

// create, delete and set store the zxid of the transaction in zxid, if that is not nil.
func (s *session) create(ctx context.Context, path string, data []byte, mode driver.Mode, acl []driver.ACL, zxid *int64) (string, error) {
	c := call{op: "create", path: path, size: createSize(path, data, acl), zxid: zxid}
	flags, err := createFlags(mode)
	if err == nil {
		err = checkPath(path, mode.Sequential())
	}
	if err != nil {
		return "", wrap(c, err)
	}
	acls := convertACL(acl)
	return run(ctx, s, c, func(conn *zk.Conn) (string, error) {
		if mode == driver.Container {
			return conn.CreateContainer(path, content(data), flags, acls)
		}
		return conn.Create(path, content(data), flags, acls)
	})
}

// Delete implements driver.Session.
func (s *session) Delete(ctx context.Context, path string, version int32) error {
	return s.delete(ctx, path, version, nil)
}

func (s *session) delete(ctx context.Context, path string, version int32, zxid *int64) error {
	c := call{op: "delete", path: path, size: pathSize(path) + 4, zxid: zxid}
	if err := checkPath(path, false); err != nil {
		return wrap(c, err)
	}
	_, err := run(ctx, s, c, func(conn *zk.Conn) (struct{}, error) {
		return struct{}{}, conn.Delete(path, version)
	})
	return err
}

// Get implements driver.Session.
func (s *session) Get(ctx context.Context, path string) (driver.Node, error) {
	c := call{op: "get", path: path, size: pathSize(path) + 1}
	if err := checkPath(path, false); err != nil {
		return driver.Node{}, wrap(c, err)
	}
	return run(ctx, s, c, func(conn *zk.Conn) (driver.Node, error) { return getNode(conn, path) })
}

// getNode is the client's read, used by Get and Watch.
func getNode(conn *zk.Conn, path string) (driver.Node, error) {
	data, stat, err := conn.Get(path)
	if err != nil {
		return driver.Node{}, err
	}
	return driver.Node{Data: data, Stat: convertStat(stat)}, nil
}

// Set implements driver.Session.
func (s *session) Set(ctx context.Context, path string, data []byte, version int32) (driver.Stat, error) {
	return s.set(ctx, path, data, version, nil)
}

func (s *session) set(ctx context.Context, path string, data []byte, version int32, zxid *int64) (driver.Stat, error) {
	c := call{op: "set", path: path, size: pathSize(path) + 4 + len(data) + 4, zxid: zxid}
	if err := checkPath(path, false); err != nil {
		return driver.Stat{}, wrap(c, err)
	}
	return run(ctx, s, c, func(conn *zk.Conn) (driver.Stat, error) {
		stat, err := conn.Set(path, content(data), version)
		if err != nil {
			return driver.Stat{}, err
		}
		return convertStat(stat), nil
	})
}

// Children implements driver.Session.
func (s *session) Children(ctx context.Context, path string) ([]string, driver.Stat, error) {
	c := call{op: "children", path: path, size: pathSize(path) + 1}
	if err := checkPath(path, false); err != nil {
		return nil, driver.Stat{}, wrap(c, err)
	}
	l, err := run(ctx, s, c, func(conn *zk.Conn) (list, error) { return getChildren(conn, path) })
	return l.names, l.stat, err
}

// list is a znode's children and its Stat.
type list struct {
	names []string
	stat  driver.Stat
}

// getChildren is the client's list, used by Children and WatchChildren.
func getChildren(conn *zk.Conn, path string) (list, error) {
	names, stat, err := conn.Children(path)
	if err != nil {
		return list{}, err
	}
	return list{names, convertStat(stat)}, nil
}

// Sync implements driver.Session.
func (s *session) Sync(ctx context.Context, path string) error {
	c := call{op: "sync", path: path, size: pathSize(path)}
	if err := checkPath(path, false); err != nil {
		return wrap(c, err)
	}
	_, err := run(ctx, s, c, func(conn *zk.Conn) (struct{}, error) {
		_, err := conn.Sync(path)
		return struct{}{}, err
	})
	return err
}

// createFlags translates a mode.
func createFlags(mode driver.Mode) (int32, error) {
	switch mode {
	case driver.Persistent:
		return zk.FlagPersistent, nil
	case driver.Ephemeral:
		return zk.FlagEphemeral, nil
	case driver.PersistentSequential:
		return zk.FlagSequence, nil
	case driver.EphemeralSequential:
		return zk.FlagEphemeralSequential, nil
	case driver.Container:
		return zk.FlagContainer, nil
	}
	return 0, fmt.Errorf("%w: unknown mode %v", driver.ErrBadArguments, mode)
}

// content replaces nil by empty data: nil would be stored as null, which some clients
// in other languages do not handle.
func content(data []byte) []byte {
	if data == nil {
		return []byte{}
	}
	return data
}

// convertACL translates an access list.
func convertACL(acl []driver.ACL) []zk.ACL {
	list := make([]zk.ACL, len(acl))
	for i, a := range acl {
		list[i] = zk.ACL{Perms: int32(a.Perms), Scheme: a.Scheme, ID: a.ID}
	}
	return list
}

// convertStat translates a Stat.
func convertStat(s *zk.Stat) driver.Stat {
	return driver.Stat{
		Czxid:          s.Czxid,
		Mzxid:          s.Mzxid,
		Pzxid:          s.Pzxid,
		Ctime:          s.Ctime,
		Mtime:          s.Mtime,
		Version:        s.Version,
		Cversion:       s.Cversion,
		Aversion:       s.Aversion,
		EphemeralOwner: s.EphemeralOwner,
		DataLength:     s.DataLength,
		NumChildren:    s.NumChildren,
	}
}
