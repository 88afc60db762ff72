//go:build linux

package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

// until starts a run that holds a name until it gets a signal.
func until(t *testing.T, e *ensemble.Ensemble, name string) *process {
	t.Helper()
	holder := start(t, urlOf(e.Hosts()), nil, "run", "--label=stuck", name, "--", "sh", "-c", "echo ready; exec sleep 1000")
	eventually(t, name+" is held", func() bool { return holder.stdout.String() == "ready\n" })
	return holder
}

// TestNestedRunLeadsToTheHolder: the command of a run is a run that waits for another name. From the outer name, the flag
// --tree leads to the process that holds the inner one: also over three runs, and if coreutils timeout is in between.
func TestNestedRunLeadsToTheHolder(t *testing.T) {
	t.Parallel()
	e := servers(t)
	zklock := binary(t)
	for what, between := range map[string][]string{
		"direct":      nil,
		"a shell":     {"sh", "-c", `"$0" "$@"; exit $?`},
		"timeout":     {"timeout", "1000"},
		"another run": {zklock, "run", newName(t), "--"},
	} {
		t.Run(what, func(t *testing.T) {
			outer, inner := newName(t), newName(t)
			holder := until(t, e, inner)
			nested := append(append([]string{"run", outer, "--"}, between...), zklock, "run", inner, "--", "true")
			victim := start(t, urlOf(e.Hosts()), nil, nested...)
			awaitQueue(t, observer(t, e), inner, 2)
			waiter := start(t, urlOf(e.Hosts()), nil, "run", outer, "--", "true")
			awaitQueue(t, observer(t, e), outer, 2)
			var out string
			defer func() { t.Logf("%s", out) }()
			eventually(t, "the tree leads to the holder of the inner name", func() bool {
				_, out, _ = finish(t, urlOf(e.Hosts()), nil, "who", "--tree", outer)
				_, end, _ := strings.Cut(out, "\nat the end: ")
				return strings.Contains(out, "it waits for "+inner) && strings.Contains(end, fmt.Sprintf(`"stuck" holds %s, and waits for no lock`, inner))
			})
			holder.signal(t, syscall.SIGTERM)
			for _, p := range []*process{victim, waiter} {
				if code := p.code(t); code != 0 || p.stderr.String() != "" {
					t.Errorf("%d, %q", code, p.stderr.String())
				}
			}
			holder.code(t)
		})
	}
}

// TestNestedRunsThatWaitForEver: a run within a run of the same name fails, and so does one of two that wait for each other's
// name. A run that has left the group, for which the outer one does not wait, waits itself.
func TestNestedRunsThatWaitForEver(t *testing.T) {
	t.Parallel()
	e := servers(t)
	zklock, url := binary(t), urlOf(e.Hosts())
	name, other := newName(t), newName(t)
	code, _, said := finish(t, url, nil, "run", name, "--", zklock, "run", "-q", name, "--", "true")
	if code != 75 || !strings.Contains(said, "waiting for that would never end") || strings.Count(said, "\n") != 1 {
		t.Errorf("the same name: %d, %q", code, said)
	}
	if code, _, said := finish(t, url, nil, "run", "--shared", name, "--", zklock, "run", "--shared", name, "--", "true"); code != 0 || said != "" {
		t.Errorf("the same name, shared: %d, %q", code, said)
	}
	for what, command := range map[string]string{
		"outside of the group": `setsid --wait "$0" run --wait 2s "$1" -- true; exit $?`,
		"another root":         `ZKLOCK_URL='` + strings.Replace(url, root, root+"/other", 1) + `' "$0" run --wait 2s "$1" -- echo other`,
	} {
		code, out, said := finish(t, url, nil, "run", "--shell", name, "--", strings.NewReplacer(`"$0"`, zklock, `"$1"`, "'"+name+"'").Replace(command))
		if strings.Contains(said, "never end") || what == "another root" && (code != 0 || out != "other\n") || what != "another root" && code != 75 {
			t.Errorf("%s: %d, %q, %q", what, code, out, said)
		}
	}
	both, gate := make([]*process, 2), filepath.Join(t.TempDir(), "gate")
	for i, names := range [][]string{{name, other}, {other, name}} {
		both[i] = start(t, url, nil, "run", names[0], "--", "sh", "-c", `echo ready; until test -e "$2"; do sleep 0.1; done; "$0" run "$1" -- true; exit $?`, zklock, names[1], gate)
	}
	eventually(t, "both names are held", func() bool {
		return both[0].stdout.String() == "ready\n" && both[1].stdout.String() == "ready\n"
	})
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	codes := fmt.Sprint(both[0].code(t), both[1].code(t))
	if said := both[0].stderr.String() + both[1].stderr.String(); codes != "0 75" && codes != "75 0" || !strings.Contains(said, "deadlock") {
		t.Errorf("two that wait for each other: %s, %q", codes, said)
	}
}
