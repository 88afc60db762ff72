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

	// PermAll is all of these permissions.
	PermAll = PermRead | PermWrite | PermCreate | PermDelete | PermAdmin
)

// ACL grants permissions on a znode to an identity.
type ACL struct {
	// Perms are the permissions that are granted.
	Perms Perm

	// Scheme is ZooKeeper's name for the kind of identity: world, auth,
	// digest, ip, x509.
	Scheme string

	// ID is the identity, in the form that the scheme prescribes.
	ID string
}

// OpenACL returns an access list that grants perms to every session.
func OpenACL(perms Perm) []ACL { return []ACL{{Perms: perms, Scheme: "world", ID: "anyone"}} }

// CreatorACL returns an access list that grants perms to every identity of the creating
// session. A create by a session without an identity fails with [ErrInvalidACL].
func CreatorACL(perms Perm) []ACL { return []ACL{{Perms: perms, Scheme: "auth", ID: ""}} }
