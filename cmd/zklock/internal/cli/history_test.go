package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock/memdriver"
)

// serverFiles is the folder of a server where web-1 held orders/42 for three seconds, and web-2 waited for it.
const serverFiles = "../../../../contrib/locktest/txnlog/testdata"

func TestHistoryShowsWhoHeldAndWaited(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	for _, logs := range [][]string{{serverFiles}, {filepath.Join(serverFiles, "version-2"), serverFiles, serverFiles}} {
		args := []string{"history", "orders/42", "-o", "json"}
		for _, dir := range logs {
			args = append(args, "--log", dir)
		}
		code, out, stderr := command(t, e, args...)
		var got []entry
		if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil || len(got) != 2 || !strings.Contains(stderr, "the files reach from ") {
			t.Fatalf("%d, %v, %s, %q", code, err, out, stderr)
		}
		if w := got[1]; w.Name != "orders/42" || w.Mode != "exclusive" || w.Label != "web-2" || w.Host != "vm" || w.PID != 30767 || w.End != "released" ||
			w.Asked.String() != "2026-11-29T18:15:03.097Z" || w.Held.String() != "2026-11-29T18:15:05.717Z" || w.Until.String() != "2026-11-29T18:15:05.771Z" ||
			w.Token != "0000000000000006.00000000" || w.Session != "0x10001a375640001" {
			t.Errorf("%+v", w)
		}
	}
	code, out, _ := command(t, e, "history", "--log", serverFiles, "-o", "wide")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || len(lines) != 4 || !strings.HasPrefix(lines[3], "nightly ") || !strings.Contains(lines[0], "SESSION") || !strings.Contains(lines[2], " web-2 ") {
		t.Errorf("%d, %s", code, out)
	}
}

func TestHistoryDrawsALineOfTime(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	code, out, _ := command(t, e, "history", "--log", serverFiles, "-o", "bars", "orders/42")
	lines := strings.Split(out, "\n")
	if code != 0 || len(lines) != 4 {
		t.Fatalf("%d, %s", code, out)
	}
	// web-1 holds from the first cell on, web-2 begins to wait after 0.7 s of 3.4 s, and holds for the last 54 ms.
	at := strings.Index(lines[1], "#")
	if got, want := lines[1][at:], strings.Repeat("#", 60); got[:59] != want[:59] || !strings.Contains(lines[1], "  web-1  0s") || !strings.Contains(lines[1], "  3.316s  ") {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := lines[2][at:], strings.Repeat(" ", 12)+strings.Repeat(".", 47)+"#"; got != want || !strings.Contains(lines[2], "  2.62s   54ms") {
		t.Errorf("%q, want %q", lines[2], want)
	}
}

// Entries that never held, and those that are there at the end of the files. A hold that is shorter than a cell shows.
func TestBars(t *testing.T) {
	dots, held := strings.Repeat(".", 59), strings.Repeat("#", 59)
	for _, c := range []struct {
		entry
		want string
	}{
		{entry{Asked: 1000, Until: 7000}, dots + "."},
		{entry{Asked: 1000}, dots + ">"},
		{entry{Asked: 1000, Held: 1000}, held + ">"},
		{entry{Asked: 1000, Held: 3000, Until: 3001}, strings.Repeat(".", 20) + "#"},
		{entry{Asked: 3000, Held: 3000, Until: 3000}, strings.Repeat(" ", 20) + "#"},
	} {
		if got := c.bar(1000, 7000, 7000); got != c.want {
			t.Errorf("%+v: %q, want %q", c.entry, got, c.want)
		}
	}
	if got := (entry{Asked: 1, Held: 1, Until: 1}).bar(1, 1, 1); got != "#" {
		t.Errorf("a line without a length: %q", got)
	}
}

func TestHistorySaysWhatTheFilesLack(t *testing.T) {
	e := memdriver.New()
	defer e.Close()
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "log.1"), []byte("not a log of ZooKeeper at all"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"history", "--log", serverFiles, "stock"}, 0, `the files have no holder and no waiter of "stock"`},
		{[]string{"history"}, 64, "--log is missing"},
		{[]string{"history", "--log", serverFiles, "a", "b"}, 64, "the arguments are not those of"},
		{[]string{"history", "--log", t.TempDir()}, 78, "has no transaction logs: name a server's dataLogDir"},
		{[]string{"history", "--log", filepath.Join(t.TempDir(), "none")}, 78, "no such file"},
		{[]string{"history", "--log", broken}, 78, "which is not ZooKeeper's"},
	} {
		if code, out, stderr := command(t, e, c.args...); code != c.code || out != "" || !strings.Contains(stderr, c.says) {
			t.Errorf("%q: %d, %q, %q; want %d and %q", c.args, code, out, stderr, c.code, c.says)
		}
	}
}
