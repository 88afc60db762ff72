package main

import (
	"bytes"
	"testing"
	"time"
)

func TestReport(t *testing.T) {
	chosen := []suite{{name: "locks"}, {name: "TLS"}}
	old := row{line{name: "3.5"}, "3.5.10", []cell{{passed: 2, took: time.Second}, {passed: 1, skipped: []note{{"TestX", "too old"}, {"TestY", "too old"}}}}, ""}
	next := row{line{name: "3.10"}, "", nil, "not released yet"}
	broken := row{line{name: "3.9"}, "3.9.6", []cell{{passed: 2}, {failed: []note{{"TestZ", "two holders"}}}}, ""}
	unreachable := row{line{name: "3.8"}, "", nil, "no network"}
	var b bytes.Buffer
	if err := report(&b, []row{old, next}, chosen, 90*time.Second); err != nil {
		t.Error(err)
	}
	const want = `| ZooKeeper | locks            | TLS                  |
|-----------|------------------|----------------------|
| 3.5.10    | ok 2, 1 s        | ok 1, skipped 2, 0 s |
| 3.10      | not released yet |                      |

- 3.5.10, TLS: skipped TestX, TestY: too old

3 tests passed and 0 failed in 1m30s.
`
	if b.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", b.String(), want)
	}
	for name, rows := range map[string][]row{"a failure": {old, broken}, "an error": {old, unreachable}, "nothing run": {next}} {
		if err := report(&bytes.Buffer{}, rows, chosen, 0); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
