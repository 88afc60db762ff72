package queue

import "errors"

// Errors that callers get by the names which package zklock gives them.
var (
	ErrConflict    = errors.New("conflict")
	ErrInvalidName = errors.New("invalid lock name")
)
