package memdriver

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/zklock/go-zklock/zklock/driver"
)

// identity is an identity that a session has proved.
type identity struct {
	scheme, id string
}

// clientAddr is the address of every client of the model. Access lists of scheme ip
// are compared with it.
var clientAddr = netip.MustParseAddr("127.0.0.1")

// openToAll is the access list of almost every znode. Sharing one slice avoids a copy
// for each znode.
var openToAll = driver.OpenACL(driver.PermAll)

// fixACL checks an access list, and replaces entries of scheme auth by the session's
// identities, as the server does before it stores the list.
func fixACL(acl []driver.ACL, ids []identity) ([]driver.ACL, error) {
	if slices.Equal(acl, openToAll) {
		return openToAll, nil
	}
	if len(acl) == 0 {
		return nil, driver.ErrInvalidACL
	}
	fixed := make([]driver.ACL, 0, len(acl))
	add := func(a driver.ACL) {
		if !slices.Contains(fixed, a) {
			fixed = append(fixed, a)
		}
	}
	for _, a := range acl {
		switch a.Scheme {
		case "world":
			if a.ID != "anyone" {
				return nil, driver.ErrInvalidACL
			}
			add(a)
		case "auth":
			if len(ids) == 0 {
				return nil, driver.ErrInvalidACL
			}
			for _, id := range ids {
				add(driver.ACL{Perms: a.Perms, Scheme: id.scheme, ID: id.id})
			}
		case "digest":
			if strings.Count(a.ID, ":") != 1 {
				return nil, driver.ErrInvalidACL
			}
			add(a)
		case "ip":
			if _, ok := parsePrefix(a.ID); !ok {
				return nil, driver.ErrInvalidACL
			}
			add(a)
		default:
			return nil, driver.ErrInvalidACL
		}
	}
	return fixed, nil
}

// permits reports whether a session with these identities has a permission.
func permits(acl []driver.ACL, perm driver.Perm, ids []identity) bool {
	for _, a := range acl {
		if a.Perms&perm == 0 {
			continue
		}
		switch a.Scheme {
		case "world":
			return true
		case "ip":
			if prefix, ok := parsePrefix(a.ID); ok && prefix.Contains(clientAddr) {
				return true
			}
		default:
			if slices.Contains(ids, identity{a.Scheme, a.ID}) {
				return true
			}
		}
	}
	return false
}

// parsePrefix parses an address with or without a prefix length.
func parsePrefix(s string) (netip.Prefix, bool) {
	if addr, err := netip.ParseAddr(s); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen()), true
	}
	prefix, err := netip.ParsePrefix(s)
	return prefix, err == nil
}
