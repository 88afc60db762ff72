// Package errs has the errors that more than one layer of zklock makes or looks for.
// Package zklock gives those that callers may look for their public names.
package errs
