package driver

import (
	"fmt"
	"log/slog"
	"net/url"
)

// URL is a parsed and checked connection URL, as a driver gets to see it.
type URL struct {
	// Scheme is what the driver was registered under.
	Scheme string

	// User is the user name, decoded; "" if there is none.
	User string

	// Password is the password, decoded; empty if there is none.
	Password Secret

	// Hosts is the authority's list of hosts, in order, each as written: a
	// host with or without a port, IPv6 addresses in brackets. A driver
	// decides what an empty list, a missing port or a name means.
	Hosts []string

	// Root is the absolute path under which the client works, for a driver's
	// information: paths given to a Session already contain it.
	Root string

	// Logger is where the driver logs; nil if the client was given none. What
	// must not go unseen goes to slog's default logger then.
	Logger *slog.Logger

	// Params holds the query, without the keys that package zklock owns. Each
	// key is one of Driver.Keys and has exactly one value.
	Params url.Values
}

// Secret is a string that does not show itself: printed in any way, logged or
// marshalled it reads "REDACTED". Reveal returns the text.
//
// The text is behind a function, and not in a field: package fmt prints the
// unexported fields of whatever struct a Secret is in without asking its
// methods. So Secrets cannot be compared.
type Secret struct{ reveal func() string }

// NewSecret makes a Secret of text.
func NewSecret(text string) Secret {
	if text == "" {
		return Secret{}
	}
	return Secret{func() string { return text }}
}

const redacted = "REDACTED"

// Reveal returns the secret text.
func (s Secret) Reveal() string {
	if s.reveal == nil {
		return ""
	}
	return s.reveal()
}

// IsZero reports whether the secret is empty.
func (s Secret) IsZero() bool { return s.reveal == nil }

// String implements fmt.Stringer.
func (s Secret) String() string { return redacted }

// GoString implements fmt.GoStringer.
func (s Secret) GoString() string { return redacted }

// Format implements fmt.Formatter, so that no verb shows the text.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// MarshalText implements encoding.TextMarshaler, and with it JSON.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }
