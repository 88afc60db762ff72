package memdriver

import (
	"crypto/sha1" //nolint:gosec // ZooKeeper's digest scheme is defined on it
	"encoding/base64"
	"errors"
)

// errDigest is the error of a password if this process may not use SHA-1.
var errDigest = errors.New("mem: a user and a password need SHA-1, on which ZooKeeper defines its digest scheme, and GODEBUG=fips140=only forbids it up to Go 1.25: use a later Go, or another mode of FIPS 140")

// digestIdentity returns the identity of a user and a password in the digest scheme. The scheme is
// ZooKeeper's, which computes it on a server: a program that talks to real servers never does. So it
// is allowed where FIPS 140 is enforced, as far as Go can allow it.
func digestIdentity(user, password string) (id identity, err error) {
	defer func() {
		if recover() != nil { // what SHA-1 does where it is forbidden
			err = errDigest
		}
	}()
	var sum [sha1.Size]byte
	unenforced(func() { sum = sha1.Sum([]byte(user + ":" + password)) }) //nolint:gosec // see import
	return identity{"digest", user + ":" + base64.StdEncoding.EncodeToString(sum[:])}, nil
}
