package faultdriver

import "github.com/zklock/go-zklock/zklock/driver"

// Error is the error that a fault has caused.
type Error = struckError

// Control is faultcontrol.Control.
var Control = control

// Unwrap returns the innermost session that s wraps.
func Unwrap(s driver.Session) driver.Session {
	for {
		w, ok := s.(interface{ Unwrap() driver.Session })
		if !ok {
			return s
		}
		s = w.Unwrap()
	}
}
