package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// WriteTo writes events, one a line.
func WriteTo(w io.Writer, events []Event) error {
	b := bufio.NewWriter(w)
	lines := json.NewEncoder(b)
	for _, e := range events {
		if err := lines.Encode(e); err != nil {
			return err
		}
	}
	return b.Flush()
}

// ReadFrom reads a history. It returns an error if a line has not the form of an event, or if the
// times do not rise.
func ReadFrom(r io.Reader) ([]Event, error) {
	lines := json.NewDecoder(bufio.NewReader(r))
	var events []Event
	for {
		var e Event
		switch err := lines.Decode(&e); {
		case errors.Is(err, io.EOF):
			return events, nil
		case err != nil:
			return nil, fmt.Errorf("event %d: %w", len(events)+1, err)
		}
		if n := len(events); n > 0 && e.At <= events[n-1].At {
			return nil, fmt.Errorf("event %d: its time %d is not later than %d, that of the event before", n+1, e.At, events[n-1].At)
		}
		events = append(events, e)
	}
}
