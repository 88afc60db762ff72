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

// Sequencer says that somebody held a lock: which, how, and with which token.
// It is a claim and not a proof, as good as the one who makes it.
type Sequencer struct {
	// Name is the lock's name.
	Name string

	// Mode is zklock.Exclusive or zklock.Shared. There are no sequencers of
	// permits: several holders of a semaphore write at once, so that the order
	// of their tokens says nothing.
	Mode zklock.Mode

	// Token is the lock's fencing token.
	Token zklock.Token

	// Origin tells apart locks of the same name and tokens that have no common
	// order, those of two ensembles for example. It does not travel: whoever
	// receives a sequencer sets it to where that came from.
	Origin string
}

// Of returns the sequencers of a lock, one for each of its names. A lock that
// was lost or released still has them: it is for the resource to tell whether
// they are stale. A permit has none.
func Of(l *zklock.Lock) []Sequencer { return appendLock(nil, l) }

// Held returns the sequencers of all locks that ctx carries and that are still
// held, innermost first, each once.
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
		// A lock that was joined is carried once for every join.
		if s := (Sequencer{Name: names[i], Mode: mode, Token: token}); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// String returns the form in which the sequencer travels: token, mode and
// name, the name percent-encoded, in visible ASCII without commas. The origin
// is not part of it.
func (s Sequencer) String() string {
	return s.Token.String() + " " + s.Mode.String() + " " + url.PathEscape(s.Name)
}

// Parse reads what String wrote. The text comes from another process, so what
// no lock can have been called, or held as, is refused.
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
		return s, errors.New(`want "token mode name"`)
	}
	if s.Token, err = zklock.ParseToken(fields[0]); err != nil {
		return s, err
	}
	if s.Token.IsZero() {
		return s, errors.New("its token is zero, which no lock has")
	}
	switch fields[1] {
	case zklock.Exclusive.String():
		s.Mode = zklock.Exclusive
	case zklock.Shared.String():
		s.Mode = zklock.Shared
	default:
		return s, fmt.Errorf("its mode is %q: want %v or %v", fields[1], zklock.Exclusive, zklock.Shared)
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
