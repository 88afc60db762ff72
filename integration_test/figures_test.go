package integration_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// table is a Markdown table. An empty cell of the first column has the value of the cell
// above it.
type table struct {
	head []string
	rows [][]string
}

// tables finds the tables of a document, and the other lines that are not empty.
func tables(text string) (found []table, lines []string) {
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			inside = false
			if line != "" {
				lines = append(lines, line)
			}
			continue
		}
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if !inside {
			inside = true
			found = append(found, table{head: cells})
			continue
		}
		t := &found[len(found)-1]
		if strings.HasPrefix(cells[0], "---") {
			continue
		}
		if n := len(t.rows); cells[0] == "" && n > 0 {
			cells[0] = t.rows[n-1][0]
		}
		t.rows = append(t.rows, cells)
	}
	return found, lines
}

// row returns the first row with these cells in the columns with these heads; nil if there is
// none.
func (t table) row(head, row []string) []string {
	i := slices.IndexFunc(t.rows, func(r []string) bool {
		for i, h := range head {
			at := slices.Index(t.head, h)
			if at < 0 || at >= len(r) || i >= len(row) || r[at] != row[i] {
				return false
			}
		}
		return len(row) == len(head)
	})
	if i < 0 {
		return nil
	}
	return t.rows[i]
}

// unmeasured lists the parts of a document that are not in the results. A row is missing if
// no table of the results has a row with the same cells in the columns with the same heads.
// Other lines are missing if the results do not have them literally. A document may leave out
// rows and columns. rows is the number of rows in the document.
func unmeasured(shown, results string) (missing []string, rows int) {
	there, thereLines := tables(results)
	here, lines := tables(shown)
	for _, line := range lines {
		if !slices.Contains(thereLines, line) {
			missing = append(missing, line)
		}
	}
	for _, t := range here {
		for _, row := range t.rows {
			rows++
			if !slices.ContainsFunc(there, func(measured table) bool { return measured.row(t.head, row) != nil }) {
				missing = append(missing, fmt.Sprintf("%s: %s", strings.Join(t.head, " | "), strings.Join(row, " | ")))
			}
		}
	}
	return missing, rows
}

// TestDocumentedFiguresAreTheMeasuredOnes: the README has only figures that make bench-peers has
// written to bench/results.md.
func TestDocumentedFiguresAreTheMeasuredOnes(t *testing.T) {
	results, err := os.ReadFile("bench/results.md")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, path := range []string{"../README.md"} {
		text, failed := os.ReadFile(path)
		if failed != nil {
			t.Fatal(failed)
		}
		between := regexp.MustCompile(`(?ms)^<!-- figures: [^\n]*-->$(.*?)^<!-- end of figures -->$`).FindAllStringSubmatch(string(text), -1)
		if len(between) != 1 {
			t.Fatalf("%s has %d sections of figures, want 1", path, len(between))
		}
		missing, rows := unmeasured(between[0][1], string(results))
		for _, m := range missing {
			t.Errorf("%s: bench/results.md does not have %q", path, m)
		}
		if err == nil && rows < 3 {
			t.Errorf("%s shows %d rows of bench/results.md, want at least 3", path, rows)
		}
	}
}

// TestDocumentedLeadIsMeasured: the list at the top of the README gives the throughput as multiples
// of that of zk.Lock. They are those of bench/results.md; multiples of 2 and more have no decimals.
// The last of them must be the least that was measured.
func TestDocumentedLeadIsMeasured(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	results, err := os.ReadFile("bench/results.md")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`([\d.]+) times as many with one goroutine,\s+(\d+) times with 64 locks in use at once, (\d+) times when 64 goroutines in four processes want one lock\. At worst it is ([\d.]+) times`).FindSubmatch(readme)
	if said == nil {
		t.Fatal("README.md does not say how many times as many locks as zk.Lock it takes with one goroutine, with 64 locks, with 64 goroutines in four processes, and at worst")
	}
	found, _ := tables(string(results))
	measured, least := make(map[string]string), "" // by workload
	for _, t := range found {
		at := slices.Index(t.head, "measured")
		for _, row := range t.rows {
			if at < 0 || len(t.head) < 3 || t.head[2] != "against" || row[1] != "cycles/s" || row[2] != "zk.Lock" {
				continue
			}
			measured[row[0]] = row[at]
			if least == "" || multiple(row[at]) < multiple(least) {
				least = row[at]
			}
		}
	}
	for i, workload := range []string{"1 goroutine, known name", "64 goroutines, 64 names", "4 processes x 16 goroutines, 1 name", "48 processes x 1 goroutine, 1 name"} {
		times := strings.TrimSuffix(measured[workload], "x")
		if whole, _, _ := strings.Cut(times, "."); whole != "0" && whole != "1" {
			times = whole
		}
		if string(said[i+1]) != times {
			t.Errorf("README.md says %s times for %q, and bench/results.md has %q", said[i+1], workload, measured[workload])
		}
	}
	if worst := string(said[4]) + "x"; worst != least {
		t.Errorf("README.md says that at worst it is %s, and bench/results.md has %q", worst, least)
	}
}

// multiple is the number in a figure such as 1.13x.
func multiple(figure string) float64 {
	v, err := strconv.ParseFloat(strings.TrimSuffix(figure, "x"), 64)
	if err != nil {
		return math.Inf(1) // it was not measured
	}
	return v
}

// TestDocumentedFailOverIsMeasured: the README says, to one digit, after how many seconds another process
// of the machine has the lock of a killed one. It is the p50 for three servers in bench/results-failover.md.
func TestDocumentedFailOverIsMeasured(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	results, err := os.ReadFile("bench/results-failover.md")
	if err != nil {
		t.Fatal(err)
	}
	said := regexp.MustCompile(`\[([\d.]+) seconds\]\(integration_test/bench/results-failover\.md\)`).FindSubmatch(readme)
	if said == nil {
		t.Fatal("README.md does not say how many seconds the lock of a killed process takes to its next holder")
	}
	measured := ""
	found, _ := tables(string(results))
	for _, t := range found {
		for _, r := range t.rows {
			if at := slices.Index(t.head, "3 servers: p50"); at >= 0 && strings.HasSuffix(r[0], "another process waits") {
				v, _ := strconv.ParseFloat(r[at], 64) // 0 if it is something else: never measured
				measured = fmt.Sprintf("%.1g", v)
			}
		}
	}
	if string(said[1]) != measured {
		t.Errorf("README.md says %s seconds, and bench/results-failover.md has %q", said[1], measured)
	}
}

func TestDocumentedFiguresCheckSeesWhatWasNotMeasured(t *testing.T) {
	const results = `- 2 cores

| workload | figure | target |
| --- | --- | --- |
| alone | cycles/s | 1x |

| workload | library | cycles/s | p50 |
| --- | --- | --- | --- |
| alone | zklock | 1500 | 400µs |
|  | zk.Lock | 1300 | 460µs |
| crowd | zk.Lock | 1375 |  |
`
	for _, c := range []struct {
		shown   string
		rows    int
		missing string
	}{
		{"", 0, ""},
		{results, 4, ""},
		{"- 2 cores\n\n| library | cycles/s | workload |\n|---|---|---|\n| zk.Lock | 1300 | alone |\n", 1, ""},
		{"| workload | library | cycles/s |\n|---|---|---|\n| alone | zklock | 1500 |\n| | zk.Lock | 1300 |\n", 2, ""},
		{"| workload | library | cycles/s |\n|---|---|---|\n| alone | zk.Lock | 1500 |\n", 1, "workload | library | cycles/s: alone | zk.Lock | 1500"},
		{"| workload | library | cycles/s |\n|---|---|---|\n| crowd | zk.Lock | 1300 |\n", 1, "workload | library | cycles/s: crowd | zk.Lock | 1300"},
		{"| workload | p90 |\n|---|---|\n| alone | 400µs |\n", 1, "workload | p90: alone | 400µs"},
		{"Twice as fast.\n", 0, "Twice as fast."},
	} {
		missing, rows := unmeasured(c.shown, results)
		if strings.Join(missing, "; ") != c.missing || rows != c.rows {
			t.Errorf("%q: %d rows, missing %q, want %d and %q", c.shown, rows, missing, c.rows, c.missing)
		}
	}
}

// README is a screen: what it has more of stands in docs.
const readmeWords = 1300

// TestDocumentedComparisonIsTheMeasuredOne: the three rows of the comparison in the README are those of docs/comparison.md.
func TestDocumentedComparisonIsTheMeasuredOne(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if n := len(strings.Fields(string(readme))); n > readmeWords {
		t.Errorf("README.md has %d words, want at most %d", n, readmeWords)
	}
	page, err := os.ReadFile("../docs/comparison.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"overlapped holds": nil, "stuck names": nil, "deadlocks that one failed wait has ended": nil}
	libraries := []string{""}
	found, _ := tables(string(page))
	for _, measured := range found {
		column := func(name string) int { return slices.Index(measured.head, name) }
		for _, row := range measured.rows {
			if column("overlapped holds") >= 0 && column("tokens that fell") >= 0 { // the table of other settings lacks the second
				libraries = append(libraries, strings.TrimSuffix(row[0], " concurrency"))
				for _, name := range []string{"overlapped holds", "stuck names"} {
					number, _, _ := strings.Cut(row[column(name)], " ")
					want[name] = append(want[name], number)
				}
			}
			if at := column("circles of waits"); at >= 0 && !strings.HasSuffix(row[0], " away") {
				want["deadlocks that one failed wait has ended"] = append(want["deadlocks that one failed wait has ended"], row[column("one wait failed")]+" of "+row[at])
			}
		}
	}
	shown, _ := tables(string(readme))
	checked := 0
	for _, table := range shown {
		if !slices.Equal(table.head, libraries) {
			continue
		}
		for _, row := range table.rows {
			checked++
			if !slices.Equal(row[1:], want[row[0]]) {
				t.Errorf("README.md says of %s %q, and docs/comparison.md %q", row[0], row[1:], want[row[0]])
			}
		}
	}
	if checked != len(want) {
		t.Errorf("README.md has %d rows of the comparison of %q, want %d", checked, libraries[1:], len(want))
	}
}
