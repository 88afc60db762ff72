// Package errs has the errors that more than one layer of zklock makes or looks for.
// Package zklock exports those that callers may look for, under the same names.
package errs
