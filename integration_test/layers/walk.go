package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// record runs the program of a folder with the functions of some packages of its module recorded, and returns what it
// did between its marks.
func record(module, program string, packages []string) ([]*stage, error) {
	tmp, err := os.MkdirTemp("", "walk")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	replaced, err := instrument(module, tmp, packages)
	if err != nil {
		return nil, err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return nil, err
	}
	at, binary := filepath.Join(tmp, "overlay.json"), filepath.Join(tmp, "walker")
	if err := os.WriteFile(at, overlay, 0o600); err != nil {
		return nil, err
	}
	build := exec.Command("go", "build", "-overlay", at, "-o", binary, ".")
	build.Dir, build.Stderr = program, os.Stderr
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build of %s: %w", program, err)
	}
	run := exec.Command(binary)
	var said bytes.Buffer
	if run.Stderr = &said; run.Run() != nil {
		return nil, fmt.Errorf("%s has failed: %s", program, &said)
	}
	return stages(&said)
}

//go:embed recorder/recorder.go
var recorder []byte

// instrument writes the files of packages to a folder, with a call of the recorder at the start of each function, and
// returns which file replaces which one.
func instrument(module, to string, packages []string) (map[string]string, error) {
	list := exec.Command("go", "list", "-m")
	list.Dir, list.Env = module, append(os.Environ(), "GOWORK=off")
	name, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list -m in %s: %w", module, err)
	}
	if module, err = filepath.Abs(module); err != nil {
		return nil, err
	}
	replaced := make(map[string]string)
	add := func(file string, text []byte) error {
		at := filepath.Join(to, fmt.Sprintf("%d.go", len(replaced)))
		replaced[file] = at
		return os.WriteFile(at, text, 0o600)
	}
	const folder = "internal/recorder"
	if err := add(filepath.Join(module, folder, "recorder.go"), recorder); err != nil {
		return nil, err
	}
	use := fmt.Sprintf("; import recorder %q", strings.TrimSpace(string(name))+"/"+folder)
	for _, pkg := range packages {
		fset := token.NewFileSet()
		files, _, err := parse(filepath.Join(module, pkg), fset)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			file := fset.Position(f.Pos()).Filename
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			starts := map[int]string{}
			for _, decl := range f.Decls {
				d, ok := decl.(*ast.FuncDecl)
				if !ok || d.Body == nil {
					continue
				}
				function := d.Name.Name
				if d.Recv != nil {
					function = receiver(d) + "." + function
				}
				starts[fset.Position(d.Body.Lbrace).Offset+1] = fmt.Sprintf("recorder.Enter(%q);", filepath.Base(pkg)+"/"+filepath.Base(file)+" "+function)
			}
			if len(starts) == 0 {
				continue
			}
			starts[fset.Position(f.Name.End()).Offset] = use
			for _, offset := range slices.Backward(slices.Sorted(maps.Keys(starts))) {
				text = slices.Insert(text, offset, []byte(starts[offset])...)
			}
			if err := add(file, text); err != nil {
				return nil, err
			}
		}
	}
	return replaced, nil
}
