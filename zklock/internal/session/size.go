package session

import "github.com/zklock/go-zklock/zklock/driver"

// opOverhead is at least the size of an operation on the wire without its path, data and access list:
// headers, lengths, a version or flags, and the number of entries.
const opOverhead = 32

// sizeOf returns the size of operations in the request of a transaction, or a few bytes more for each.
func sizeOf(ops []driver.Op) int {
	n := 0
	for i := range ops {
		n += opOverhead + len(ops[i].Path) + len(ops[i].Data)
		for j := range ops[i].ACL {
			entry := &ops[i].ACL[j]
			n += 12 + len(entry.Scheme) + len(entry.ID) // with two lengths and the permissions
		}
	}
	return n
}
