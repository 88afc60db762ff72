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
