package driver

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

	// PermAll is all of them.
	PermAll = PermRead | PermWrite | PermCreate | PermDelete | PermAdmin
)

// ACL grants permissions on a znode to an identity.
type ACL struct {
	// Perms is what is granted.
	Perms Perm

	// Scheme is ZooKeeper's name for the kind of identity: world, auth,
	// digest, ip, x509.
	Scheme string

	// ID is the identity, in the terms of the scheme.
	ID string
}

// OpenACL grants perms to everybody.
func OpenACL(perms Perm) []ACL { return []ACL{{Perms: perms, Scheme: "world", ID: "anyone"}} }

// CreatorACL grants perms to every identity the creating session has
// authenticated as. A session that has none gets ErrInvalidACL.
func CreatorACL(perms Perm) []ACL { return []ACL{{Perms: perms, Scheme: "auth", ID: ""}} }
