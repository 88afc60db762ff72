//go:build go1.26

package memdriver

import "crypto/fips140"

// unenforced calls f, which may use what FIPS 140 does not allow.
func unenforced(f func()) { fips140.WithoutEnforcement(f) }
