package zklock

import "github.com/zklock/go-zklock/zklock/internal/queue"

// CheckName says what is wrong with a lock's name, before anything is acquired:
// nil, or an error that matches ErrInvalidName.
func CheckName(name string) error { return queue.CheckName(name) }
