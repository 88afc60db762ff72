package zklock

// Refuse returns an Acquirer that no call can acquire: Acquire, TryAcquire, [Do] and an [All] that
// it is a part of fail with an [Error] that matches err. A function that chooses the lock of a
// request, as for the adapters, returns it for a request that gets no lock. The adapters then answer
// as for any acquisition that failed with err. For example, they refuse a request as invalid if err
// matches [ErrInvalidName]. A test returns it in place of a lock that fails.
//
// It has no name, and belongs to no Client: its failures call no hooks and are not counted in
// [Stats]. Those of an All are, if another part of it belongs to a Client. A nil err is replaced by
// one that matches [ErrMisuse].
func Refuse(err error) Acquirer {
	if err == nil {
		err = errNilRefusal
	}
	return &Mutex{lockable{err: err}}
}
