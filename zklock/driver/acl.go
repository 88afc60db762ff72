package driver

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zklock/go-zklock/internal/nearest"
)

// Perm is a set of permissions on a znode, as ZooKeeper defines them.
type Perm uint32

const (
	// PermRead allows reading data and listing children.
	PermRead Perm = 1 << iota

	// PermWrite allows setting data.
	PermWrite

	// PermCreate allows creating children.
	PermCreate

	// PermDelete allows deleting children.
	PermDelete

	// PermAdmin allows setting the ACL.
	PermAdmin

	// PermAll is all of these permissions.
	PermAll = PermRead | PermWrite | PermCreate | PermDelete | PermAdmin
)

// ACL grants permissions on a znode to an identity.
type ACL struct {
	// Perms are the permissions that are granted.
	Perms Perm

	// Scheme is ZooKeeper's name for the kind of identity: world, auth,
	// digest, ip, x509, sasl.
	Scheme string

	// ID is the identity, in the form that the scheme prescribes.
	ID string
}

// OpenACL returns an access list that grants perms to every session.
func OpenACL(perms Perm) []ACL { return []ACL{{Perms: perms, Scheme: "world", ID: "anyone"}} }

// CreatorACL returns an access list that grants perms to every identity of the creating
// session. A create by a session without an identity fails with [ErrInvalidACL].
func CreatorACL(perms Perm) []ACL { return []ACL{{Perms: perms, Scheme: "auth", ID: ""}} }

// perms are the letters of permissions, as ZooKeeper's own tools write them.
const perms = "rwcda"

// ParseACL parses the access list that a URL names: open, creator, or entries of the form
// SCHEME:ID:PERMS, separated by commas, such as sasl:svc:cdrwa,digest:ops:HASH:r. "open" is
// [OpenACL] of all permissions, and "creator" is [CreatorACL] of them. No error shows the text.
func ParseACL(text string) ([]ACL, error) {
	switch text {
	case "open":
		return OpenACL(PermAll), nil
	case "creator":
		return CreatorACL(PermAll), nil
	}
	var list []ACL
	for entry := range strings.SplitSeq(text, ",") {
		scheme, rest, _ := strings.Cut(strings.TrimSpace(entry), ":")
		last := strings.LastIndexByte(rest, ':')
		if scheme == "" || last < 0 {
			return nil, fmt.Errorf("%w%s", errACL, nearest.Hint(text, []string{"creator", "open"}))
		}
		a := ACL{Scheme: scheme, ID: rest[:last]}
		for _, letter := range rest[last+1:] {
			i := strings.IndexRune(perms, letter)
			if i < 0 {
				return nil, errACL
			}
			a.Perms |= 1 << i
		}
		if a.Perms == 0 {
			return nil, errACL
		}
		list = append(list, a)
	}
	return list, nil
}

var errACL = errors.New("want creator or open, or entries of the form SCHEME:ID:PERMS, separated by commas, such as sasl:svc:cdrwa")
