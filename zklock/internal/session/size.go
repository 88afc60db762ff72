package session

import "github.com/zklock/go-zklock/zklock/driver"

// sizeOf returns the size of operations in the request of a transaction.
func sizeOf(ops []driver.Op) int {
	const header, text, number = 9, 4, 4 // of an operation; the length of a path, of data or of an entry's text; a version, flags, permissions
	n := 8 + header                      // of the request, and its end
	for i := range ops {
		op := &ops[i]
		n += header + text + len(op.Path)
		switch op.Kind {
		case driver.OpCreate:
			n += text + len(op.Data) + number + number // the number of entries, and the flags
			for j := range op.ACL {
				n += number + text + len(op.ACL[j].Scheme) + text + len(op.ACL[j].ID)
			}
		case driver.OpSet:
			n += text + len(op.Data) + number
		default:
			n += number
		}
	}
	return n
}
