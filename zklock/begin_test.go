package zklock

import "testing"

// A hold that was lost between its grant and the moment its turnstile hears of it
// is not counted: nobody would ever count it out, and all who come would wait.
func TestHoldLostBeforeItBeginsIsNotCounted(t *testing.T) {
	names := &turnstile{client: &Client{}}
	lost := &hold{over: true}
	names.beginLocked(lost)
	if names.holds != 0 || names.current != nil {
		t.Errorf("%d holds, the newest of them %p", names.holds, names.current)
	}
	names.beginLocked(&hold{})
	if names.holds != 1 || names.current == nil {
		t.Errorf("%d holds after one that goes on", names.holds)
	}
}
