package integration_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/zklock"
	_ "github.com/zklock/go-zklock/zklock/memdriver"
)

// takenKeys returns the URL keys that Open accepts for a scheme. It reads them from the error
// about an unknown key.
func takenKeys(t *testing.T, scheme string) []string {
	t.Helper()
	c, err := zklock.Open(scheme + "://127.0.0.1/root?no-such-key=1")
	if err == nil {
		_ = c.Close()
		t.Fatalf("Open accepts an unknown key for %s", scheme)
	}
	_, list, ok := strings.Cut(err.Error(), "(known: ")
	if !ok {
		t.Fatalf("%s: the error lists no keys: %v", scheme, err)
	}
	return strings.Split(strings.TrimSuffix(list, ")"), ", ")
}

// keysIn finds the keys that a document lists, in the first groups of a pattern's matches.
func keysIn(t *testing.T, path, pattern string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile(`[a-z][a-z_]+`)
	var found []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		found = append(found, name.FindAllString(m[1], -1)...)
	}
	slices.Sort(found)
	return found
}

// TestURLKeysAreDocumented compares the keys that Open accepts with the documented tables:
// each key is in a table once, and a table has no other keys.
func TestURLKeysAreDocumented(t *testing.T) {
	core := takenKeys(t, "mem")
	all := slices.Compact(slices.Sorted(slices.Values(append(takenKeys(t, "zks"), core...))))
	drivers := slices.DeleteFunc(slices.Clone(all), func(k string) bool { return slices.Contains(core, k) })
	if len(core) < 10 || len(drivers) < 5 {
		t.Fatalf("keys of the core: %q, of the driver: %q", core, drivers)
	}
	for _, c := range []struct {
		path, pattern string
		want          []string
	}{
		{"../docs/urls.md", "(?m)^\\| (`[a-z_]+`(?:, `[a-z_]+`)*) \\| .* \\| .*\\|$", all},
		{"../zklock/zkdriver/doc.go", `(?m)^//   - ([a-z_]+(?:, [a-z_]+)*): `, drivers},
	} {
		got := keysIn(t, c.path, c.pattern)
		for _, key := range c.want {
			if n := len(got) - len(slices.DeleteFunc(slices.Clone(got), func(k string) bool { return k == key })); n != 1 {
				t.Errorf("%s has key %s %d times in its table, want 1", c.path, key, n)
			}
		}
		for _, key := range got {
			if !slices.Contains(c.want, key) {
				t.Errorf("%s has %s in its table, which Open does not accept", c.path, key)
			}
		}
	}
}

// TestURLKeysAreFields: each key of the core is a field of Config with the same name, and its
// comment names the key. docs/urls.md has the exception.
func TestURLKeysAreFields(t *testing.T) {
	source, err := os.ReadFile("../zklock/config.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range takenKeys(t, "mem") {
		field := ""
		for _, word := range strings.Split(key, "_") {
			field += strings.ToUpper(word[:1]) + word[1:]
		}
		says := "the key " + key
		switch key {
		case "acl":
			field = "ACL"
		case "create_root":
			field, says = "RequireRoot", "create_root=false"
		}
		if _, ok := reflect.TypeFor[zklock.Config]().FieldByName(field); !ok {
			t.Errorf("Config has no field %s for the key %s", field, key)
		}
		if !regexp.MustCompile(`\n\t` + field + ` +\S+ +// ` + says + `\b`).Match(source) {
			t.Errorf("the comment on %s does not say: %s", field, says)
		}
	}
}
