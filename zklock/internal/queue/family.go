package queue

// family is a form of queue nodes' names. Recipes of one family see each other's nodes.
//
//	FamilyReadWrite   [_c_<uuid>-]__WRIT__<10 digits>      wants the lock alone
//	                  [_c_<uuid>-]__READ__<10 digits>      wants it together with other readers
//	                  [_c_<uuid>-]__PERM<n>__<10 digits>   wants one of n permits; Curator has no such nodes
//	familyMutex       [_c_<uuid or 32 hex digits>-]lock-<10 digits>
//	FamilyKazoo       <32 hex digits>__lock__<10 digits>, __rlock__ alike
//	familyLatch       [_c_<uuid>-]latch-<10 digits>
type family uint8

const (
	FamilyReadWrite family = iota
	familyMutex
	FamilyKazoo
	familyLatch
	Families = iota // the number of families
)
