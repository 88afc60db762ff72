package driver

import (
	"fmt"
	"log/slog"
	"net/url"
)

// URL is a connection URL as package zklock gives it to a driver, parsed and checked.
type URL struct {
	// Scheme is the URL scheme that the driver is registered for.
	Scheme string

	// User is the user name, decoded; "" if there is none.
	User string

	// Password is the password, decoded; empty if there is none.
	Password Secret

	// Hosts is the URL's list of hosts, in order, each as it is written there: a host with
	// or without a port, IPv6 addresses in brackets. The driver decides what an empty
	// list, a missing port or a name means.
	Hosts []string

	// Root is the absolute path of the client's root. A driver does not add it: paths given to
	// a Session already contain it.
	Root string

	// Logger is where the driver logs. A client's never waits for the program's handler. It is nil if a
	// program opens the driver without a client and sets none; a driver then uses slog's default logger for
	// messages that must not be missed.
	Logger *slog.Logger

	// Options are the values that the program has passed to zklock.WithDriverOption. A driver
	// refuses those that it does not know.
	Options []any

	// Params holds the URL's query, without the keys that package zklock itself uses.
	// Each key is one of Driver.Keys and has exactly one value.
	Params url.Values
}

// Secret is a string, such as a password, that cannot be printed by mistake: printed,
// logged or marshalled in any way it reads "REDACTED". Reveal returns the text. A Secret
// may be used by several goroutines.
//
// A function holds the text, and not a field: package fmt prints the unexported fields of
// a struct that contains a Secret without calling the Secret's methods. Therefore Secrets
// cannot be compared.
type Secret struct{ reveal func() string }

// NewSecret returns a Secret that holds text.
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
