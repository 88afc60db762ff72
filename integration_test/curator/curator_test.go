package curator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindTakesTheFolderOfTheEnvironment(t *testing.T) {
	folder := t.TempDir()
	t.Setenv(Env, folder)
	if path, version, err := Find(); err == nil || !strings.Contains(err.Error(), folder) {
		t.Errorf("an empty folder: %q, %q, %v, want an error that names it", path, version, err)
	}
	if err := os.WriteFile(filepath.Join(folder, "curator-recipes-5.9.0.jar"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	path, version, err := Find()
	if err != nil || version != "5.9.0" || path != filepath.Join(folder, "*") {
		t.Errorf("%q, %q, %v, want all jars of the folder, and 5.9.0", path, version, err)
	}
}
