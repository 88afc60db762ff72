package kazoo_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zklock/go-zklock/integration_test/kazoo"
	"github.com/zklock/go-zklock/internal/testkit/ensemble"
)

// A folder without kazoo is an error that names it. Python would import another kazoo.
func TestFindNamesAFolderWithoutKazoo(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(kazoo.Env, folder)
	if p, err := kazoo.Find(); err == nil || !strings.Contains(err.Error(), kazoo.Env+"="+folder) {
		t.Errorf("Find returned %+v, %v, want an error that names %s=%s", p, err, kazoo.Env, folder)
	}
}

// The kazoo in the named folder is the one that is imported, whatever is installed.
func TestFindUsesTheNamedFolder(t *testing.T) {
	folder := t.TempDir()
	pkg := filepath.Join(folder, "kazoo")
	if err := os.Mkdir(pkg, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"__init__.py": "", "version.py": "__version__ = '99.1'\n"} {
		if err := os.WriteFile(filepath.Join(pkg, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv(kazoo.Env, folder)
	if _, err := exec.LookPath("python3"); err != nil && os.Getenv(ensemble.RequiredEnv) != "1" {
		t.Skip(err)
	}
	p, err := kazoo.Find()
	if err != nil {
		t.Fatal(err)
	}
	if p.Version != "99.1" {
		t.Errorf("version %q, want 99.1", p.Version)
	}
}
