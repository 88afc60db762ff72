package fence

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/zklock/go-zklock/zklock"
)

// Sequencer states that a client held a lock, in which mode, and with which token. It is a
// claim and not a proof, and is as reliable as its sender.
type Sequencer struct {
	// Name is the lock's name.
	Name string

	// Mode is zklock.Exclusive or zklock.Shared. Permits have no sequencers: several
	// holders of a semaphore write at the same time, so the order of their tokens
	// says nothing.
	Mode zklock.Mode

	// Token is the lock's fencing token.
	Token zklock.Token

	// Origin distinguishes locks of the same name whose tokens have no common order,
	// those of two ensembles for example. It is not transmitted: the receiver of a
	// sequencer sets it to where the sequencer came from.
	Origin string
}

// Of returns the sequencers of a lock, one for each of its names. A lock that was
// lost or released still has them; the resource decides whether they are stale. A
// permit has none.
func Of(l *zklock.Lock) []Sequencer { return appendLock(nil, l) }

// Held returns the sequencers of all locks that ctx carries and that are still held.
// The innermost lock is first, and each sequencer appears once.
func Held(ctx context.Context) []Sequencer {
	var all []Sequencer
	for _, l := range zklock.HeldIn(ctx) {
		all = appendLock(all, l)
	}
	return all
}

func appendLock(all []Sequencer, l *zklock.Lock) []Sequencer {
	if l == nil {
		return all
	}
	names, token := l.Names(), l.Token()
	for i, mode := range l.Modes() {
		if mode != zklock.Exclusive && mode != zklock.Shared {
			continue
		}
		// A context carries a lock once for each join by re-entry.
		if s := (Sequencer{Name: names[i], Mode: mode, Token: token}); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// comparable returns an error that matches ErrUnfenced if the order of s and other
// sequencers says nothing.
func (s Sequencer) comparable() error {
	if s.Token.IsZero() || s.Mode != zklock.Exclusive && s.Mode != zklock.Shared {
		return fmt.Errorf("fence: lock %q: %w", s.Name, ErrUnfenced)
	}
	return nil
}

// String returns the sequencer's form for transmission: token, mode and name, separated by
// spaces. The name is percent-encoded. The text is visible ASCII and spaces, without commas.
// The origin is not part of it.
func (s Sequencer) String() string {
	return s.Token.String() + " " + s.Mode.String() + " " + url.PathEscape(s.Name)
}

// Parse parses the text that String returns. The text is from another process, so Parse refuses
// names that are not valid and modes other than exclusive and shared.
func Parse(text string) (Sequencer, error) {
	s, err := parse(text)
	if err != nil {
		return Sequencer{}, fmt.Errorf("fence: %.80q is not a sequencer: %w", text, err)
	}
	return s, nil
}

func parse(text string) (s Sequencer, err error) {
	fields := strings.Split(text, " ")
	if len(fields) != 3 {
		return s, errors.New(`it must have the form "token mode name"`)
	}
	if s.Token, err = zklock.ParseToken(fields[0]); err != nil {
		return s, err
	}
	if s.Token.IsZero() {
		return s, errors.New("its token is zero, and no lock has that token")
	}
	switch fields[1] {
	case zklock.Exclusive.String():
		s.Mode = zklock.Exclusive
	case zklock.Shared.String():
		s.Mode = zklock.Shared
	default:
		return s, fmt.Errorf("its mode is %q, but must be %v or %v", fields[1], zklock.Exclusive, zklock.Shared)
	}
	if s.Name, err = url.PathUnescape(fields[2]); err != nil {
		return s, err
	}
	return s, zklock.CheckName(s.Name)
}

// MarshalText implements encoding.TextMarshaler in the form of String.
func (s Sequencer) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler in the form of String.
func (s *Sequencer) UnmarshalText(text []byte) error {
	u, err := Parse(string(text))
	if err != nil {
		return err
	}
	*s = u
	return nil
}
