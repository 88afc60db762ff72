package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// entry adds up the runs of a suite on one day, at one commit and on one machine. It is a line of the ledger.
type entry struct {
	Day     string         `json:"day"`
	Suite   string         `json:"suite"`
	Commit  string         `json:"commit"` // with a + if the files were not those of the commit
	On      string         `json:"on"`     // the machine
	Runs    int            `json:"runs"`   // that count
	Minutes float64        `json:"minutes"`
	Seeds   []int64        `json:"seeds,omitempty"`
	Figures map[string]int `json:"figures,omitempty"`
	Void    []string       `json:"void,omitempty"`     // why runs do not count
	Under   string         `json:"settings,omitempty"` // of the newest run: the cells of a row, as package census prints them
	Note    string         `json:"note,omitempty"`     // written by hand: what the violations were
}

// same reports whether both are about the same suite, day, commit and machine.
func (e entry) same(f entry) bool {
	return e.Day == f.Day && e.Suite == f.Suite && e.Commit == f.Commit && e.On == f.On
}

// add adds the runs of another entry.
func (e *entry) add(f entry) {
	e.Runs += f.Runs
	e.Minutes = rounded(e.Minutes + f.Minutes)
	e.Seeds = append(e.Seeds, f.Seeds...)
	e.Void = append(e.Void, f.Void...)
	e.Under = cmp.Or(f.Under, e.Under)
	for name, n := range f.Figures {
		if e.Figures == nil {
			e.Figures = make(map[string]int)
		}
		e.Figures[name] += n
	}
}

// rounded cuts off what the minutes do not need.
func rounded(minutes float64) float64 { return float64(int(minutes*100+0.5)) / 100 }

// entryOf is the line of one run.
func entryOf(o outcome, commit, machine string, seed int64) entry {
	e := entry{Day: o.at.Format(time.DateOnly), Suite: o.suite.name, Commit: commit, On: machine}
	if o.failed != "" {
		e.Void = []string{o.failed}
		return e
	}
	e.Under = o.settings
	e.Runs, e.Minutes, e.Figures = 1, rounded(o.took.Minutes()), make(map[string]int)
	if o.suite.seeded {
		e.Seeds = []int64{seed}
	}
	for c := range columns {
		if o.counts[c] > 0 {
			e.Figures[keys[c]] = o.counts[c]
		}
	}
	return e
}

// ledger is the file with all entries. Its methods are safe for concurrent use, but two programs must not
// add to one file at a time.
type ledger struct {
	path string
	mu   sync.Mutex // one goroutine at a time replaces the file
}

// add adds a run. The file is replaced as a whole, so that it is complete whenever the program ends.
func (l *ledger) add(e entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	entries, err := readLedger(l.path)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(entries, e.same); i >= 0 {
		entries[i].add(e)
	} else {
		entries = append(entries, e)
	}
	var text bytes.Buffer
	for _, e := range entries {
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		text.Write(append(line, '\n'))
	}
	return replace(l.path, text.Bytes())
}

// readLedger reads all entries. A file that does not exist has none.
func readLedger(path string) (entries []entry, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var e entry
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", path, n, err)
		}
		entries = append(entries, e)
	}
	return entries, lines.Err()
}

// replace writes a file that is either the old or the new one at any moment.
func replace(path string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = cmp.Or(err, file.Chmod(0o644), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		_ = os.Remove(file.Name()) // the first error says more
	}
	return err
}
