//go:build zklock_mutexes

package mutex

import (
	"strings"
	"testing"
)

// A goroutine may lock one inner mutex under an outer one, and no other two.
func TestNestedMutexes(t *testing.T) {
	var out, otherOut Mutex[Outer]
	var in, otherIn Mutex[Inner]
	type lock interface{ Lock() }
	for _, c := range []struct {
		what    string
		locked  []lock
		next    lock
		refused bool
	}{
		{"nothing is held", nil, &in, false},
		{"an inner one under an outer one", []lock{&out}, &in, false},
		{"an inner one under an inner one", []lock{&in}, &otherIn, true},
		{"a second inner one under an outer one", []lock{&out, &in}, &otherIn, true},
		{"an outer one under an inner one", []lock{&in}, &out, true},
		{"an outer one under an outer one", []lock{&out}, &otherOut, true},
		{"the same one again", []lock{&in}, &in, true},
	} {
		out, otherOut, in, otherIn = Mutex[Outer]{}, Mutex[Outer]{}, Mutex[Inner]{}, Mutex[Inner]{}
		refusal := make(chan any)
		go func() {
			defer func() { refusal <- recover() }()
			for _, m := range c.locked {
				m.Lock()
			}
			c.next.Lock()
		}()
		text, refused := (<-refusal).(string)
		if refused != c.refused || refused && !strings.Contains(text, "TestNestedMutexes") {
			t.Errorf("%s: refused with %q, want a refusal with both stacks: %t", c.what, text, c.refused)
		}
	}
}

// A mutex that was unlocked is held no longer.
func TestUnlockedMutexes(t *testing.T) {
	var out Mutex[Outer]
	var in, other Mutex[Inner]
	out.Lock()
	in.Lock()
	in.Unlock()
	other.Lock()
	out.Unlock() // in another order
	other.Unlock()
	in.Lock()
	in.Unlock()
	defer func() {
		if recover() == nil {
			t.Error("a goroutine unlocks a mutex that it has not locked")
		}
	}()
	in.Unlock()
}
