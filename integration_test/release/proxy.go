package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	xmodule "golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// proxy is a folder in the form of a module proxy, with one version of this project's modules.
type proxy struct {
	root    string // of the project
	folder  string
	version string
}

// add packs a module. The requirements on other modules of the project get the version that is
// rehearsed, as the commit of a release has them.
func (p proxy) add(ctx context.Context, m folderOf) (size int64, files int, err error) {
	packed, err := p.files(ctx, m)
	if err != nil {
		return 0, 0, err
	}
	at, err := xmodule.EscapePath(m.path())
	if err != nil {
		return 0, 0, err
	}
	dir := filepath.Join(p.folder, filepath.FromSlash(at), "@v")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return 0, 0, err
	}
	info, err := json.Marshal(map[string]any{"Version": p.version, "Time": time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return 0, 0, err
	}
	gomod, err := p.goMod(m)
	if err != nil {
		return 0, 0, err
	}
	for name, text := range map[string][]byte{"list": []byte(p.version + "\n"), p.version + ".info": info, p.version + ".mod": gomod} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
			return 0, 0, err
		}
	}
	archive, err := os.Create(filepath.Join(dir, p.version+".zip"))
	if err != nil {
		return 0, 0, err
	}
	defer archive.Close()
	if err := zip.Create(archive, xmodule.Version{Path: m.path(), Version: p.version}, packed); err != nil {
		return 0, 0, err
	}
	stat, err := archive.Stat()
	if err != nil {
		return 0, 0, err
	}
	return stat.Size(), len(packed), nil
}

// goMod returns a module's go.mod as the commit of the release has it.
func (p proxy) goMod(m folderOf) ([]byte, error) {
	path := filepath.Join(p.root, string(m), "go.mod")
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := modfile.Parse(path, text, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range f.Require {
		if r.Mod.Path == module || strings.HasPrefix(r.Mod.Path, module+"/") {
			if !slices.ContainsFunc(released, func(m folderOf) bool { return m.path() == r.Mod.Path }) {
				return nil, fmt.Errorf("%s requires %s, which is not released", path, r.Mod.Path)
			}
			if err := f.AddRequire(r.Mod.Path, p.version); err != nil {
				return nil, err
			}
		}
	}
	return f.Format()
}

// files lists the files of a module that git tracks, or would track, without those of nested
// modules. The license of the root goes into each module.
func (p proxy) files(ctx context.Context, m folderOf) (packed []zip.File, err error) {
	list, err := output(ctx, filepath.Join(p.root, string(m)), nil, "git", "ls-files", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	all := strings.Split(list, "\n")
	var nested []string
	for _, name := range all {
		if dir, ok := strings.CutSuffix(name, "/go.mod"); ok {
			nested = append(nested, dir+"/")
		}
	}
	for _, name := range all {
		path := filepath.Join(p.root, string(m), filepath.FromSlash(name))
		if slices.ContainsFunc(nested, func(dir string) bool { return strings.HasPrefix(name, dir) }) {
			continue
		}
		if _, err := os.Lstat(path); os.IsNotExist(err) {
			continue // it is deleted, and that is not committed
		}
		f := file{name: name, path: path}
		if name == "go.mod" {
			if f.text, err = p.goMod(m); err != nil {
				return nil, err
			}
		}
		packed = append(packed, f)
	}
	if m != "" {
		packed = append(packed, file{name: "LICENSE", path: filepath.Join(p.root, "LICENSE")})
	}
	return packed, nil
}

// packages lists the packages of a module that programs can import.
func (p proxy) packages(ctx context.Context, m folderOf) (found []string, err error) {
	list, err := output(ctx, filepath.Join(p.root, string(m)), append(os.Environ(), "GOWORK=off"), "go", "list", "-f", `{{if and .GoFiles (ne .Name "main")}}{{.ImportPath}}{{end}}`, "./...")
	if err != nil {
		return nil, err
	}
	for pkg := range strings.FieldsSeq(list) {
		if !strings.Contains(pkg+"/", "/internal/") {
			found = append(found, pkg)
		}
	}
	return found, nil
}

// file is a file that is packed.
type file struct {
	name, path string
	text       []byte // in place of that in path, if it is not nil
}

// Path implements zip.File.
func (f file) Path() string { return f.name }

// Lstat implements zip.File.
func (f file) Lstat() (os.FileInfo, error) {
	if f.text == nil {
		return os.Lstat(f.path)
	}
	info, err := os.Lstat(f.path)
	return sized{info, int64(len(f.text))}, err
}

// Open implements zip.File.
func (f file) Open() (io.ReadCloser, error) {
	if f.text == nil {
		return os.Open(f.path)
	}
	return io.NopCloser(bytes.NewReader(f.text)), nil
}

// sized is the description of a file whose text is replaced.
type sized struct {
	os.FileInfo
	size int64
}

// Size returns the length of the new text.
func (s sized) Size() int64 { return s.size }
