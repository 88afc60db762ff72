//go:build linux

package command_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestHistoryIsWhatItsClientsSaw: commands say when they ran, and with which token. The files of the servers, also without
// those of one of them, say the same: the holders in the same order, with the tokens, each for all of its command.
func TestHistoryIsWhatItsClientsSaw(t *testing.T) {
	t.Parallel()
	e := ownServers(t)
	url := urlOf(e.Hosts())
	const runs = 5
	var started []*process
	for i := range runs {
		p := start(t, url, nil, "run", "--label", fmt.Sprint("run-", i), "orders/42", "--", "sh", "-c", "echo $ZKLOCK_TOKEN; date +%s%3N; sleep 0.1; date +%s%3N")
		started = append(started, p)
	}
	dir := t.TempDir()
	for i, s := range e.Servers() {
		if err := os.Symlink(s.Data(), filepath.Join(dir, fmt.Sprint("zk", i+1))); err != nil {
			t.Fatal(err)
		}
	}
	type entry struct {
		Name, Label, Token, End string
		Held, Until             time.Time
		PID                     int
	}
	seen := make(map[string]string) // token and times of each label
	for i, p := range started {
		if code := p.code(t); code != 0 {
			t.Fatalf("%d, %s", code, p.stderr.String())
		}
		seen[fmt.Sprint("run-", i)] = p.stdout.String()
	}
	commands := []string{"zklock history --log zk3 -o json orders/42"}
	for _, line := range documented(t, "../../docs/command.md") {
		if strings.HasPrefix(line, "zklock history ") {
			commands = append(commands, line)
		}
	}
	for _, line := range commands {
		p := prepared("sh", "-c", line)
		p.cmd.Dir = dir
		p.cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(binary(t))+":"+os.Getenv("PATH"))
		p.begin(t)
		if code := p.code(t); code != 0 || !strings.Contains(p.stderr.String(), "the files reach from ") {
			t.Fatalf("%s: %d, %s", line, code, p.stderr.String())
		}
		if !strings.Contains(line, "json") {
			shows := "  released  "
			if strings.Contains(line, "bars") {
				shows = "  run-"
			}
			if got := strings.Count(p.stdout.String(), shows); got != runs {
				t.Errorf("%s: %d rows with %q:\n%s", line, got, shows, p.stdout.String())
			}
			continue
		}
		var entries []entry
		if err := json.Unmarshal([]byte(p.stdout.String()), &entries); err != nil || len(entries) != runs {
			t.Fatalf("%s: %v\n%s", line, err, p.stdout.String())
		}
		before := time.Time{}
		for _, got := range entries {
			var token string
			var from, to int64
			if _, err := fmt.Sscan(seen[got.Label], &token, &from, &to); err != nil || got.Name != "orders/42" || got.Token != token || got.End != "released" {
				t.Errorf("%s: %+v, and the command has printed %q", line, got, seen[got.Label])
			}
			if got.Held.UnixMilli() > from || got.Until.UnixMilli() < to || got.Held.Before(before) {
				t.Errorf("%s: %s held from %v until %v, after %v, and the command ran from %v to %v", line, got.Label, got.Held, got.Until, before, time.UnixMilli(from), time.UnixMilli(to))
			}
			before = got.Until
		}
	}
	if len(commands) < 3 {
		t.Errorf("%d commands were run", len(commands))
	}
}
