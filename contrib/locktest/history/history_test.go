package history_test

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/zklock/go-zklock/contrib/locktest/history"
)

// TestHistoryIsReadAsItWasWritten: the times of a recorder rise strictly, whichever goroutine notes an
// event, and a file has all that the recorder has.
func TestHistoryIsReadAsItWasWritten(t *testing.T) {
	r := history.NewRecorder()
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for id := range 100 {
				r.Note(history.Event{Kind: history.Granted, Worker: worker + 1, ID: id, Name: "a", Token: history.Token(strconv.Itoa(id))})
			}
		})
	}
	group.Wait()
	var file bytes.Buffer
	if err := history.WriteTo(&file, r.Events()); err != nil {
		t.Fatal(err)
	}
	got, err := history.ReadFrom(&file)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 400 || !slices.Equal(got, r.Events()) {
		t.Errorf("%d events were read, not the same as the %d that were written", len(got), len(r.Events()))
	}
}

func TestHistoryRefusesTimesThatFall(t *testing.T) {
	_, err := history.ReadFrom(strings.NewReader(`{"at":5,"kind":"calm"}` + "\n" + `{"at":5,"kind":"calm"}`))
	if err == nil || !strings.Contains(err.Error(), "event 2") {
		t.Errorf("%v, want an error that names the event", err)
	}
	if _, err = history.ReadFrom(strings.NewReader("calm")); err == nil {
		t.Error("a line that is not JSON was read")
	}
}
