package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// public has the folders of the core whose exported types programs use. Their names are promised.
var public = []string{".", "driver"}

// namedType is a declaration of a type.
type namedType struct{ folder, name, at string }

// rivals lists the names of types that a reader of some packages cannot keep apart: "handle: zklock.lockHandle
// (handle.go:20), local.Handle (handle.go:11)". Upper and lower case make no difference. Exported types of the public
// packages may share their name with one exported type of another package, which they are the face of.
func rivals(dir string, folders []string) (found []string, err error) {
	byWord := make(map[string][]namedType)
	for _, folder := range folders {
		fset := token.NewFileSet()
		files, _, err := parse(filepath.Join(dir, folder), fset)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			for _, decl := range f.Decls {
				d, ok := decl.(*ast.GenDecl)
				if !ok || d.Tok != token.TYPE {
					continue
				}
				for _, spec := range d.Specs {
					t, at := spec.(*ast.TypeSpec), fset.Position(spec.Pos())
					word := strings.ToLower(t.Name.Name)
					byWord[word] = append(byWord[word], namedType{folder, t.Name.Name, fmt.Sprintf("%s.%s (%s:%d)", f.Name.Name, t.Name.Name, filepath.Base(at.Filename), at.Line)})
				}
			}
		}
	}
	for _, word := range slices.Sorted(maps.Keys(byWord)) {
		all, faces, private := byWord[word], 0, 0
		var places []string
		for _, n := range all {
			places = append(places, n.at)
			if !token.IsExported(n.name) {
				private++
			} else if slices.Contains(public, n.folder) {
				faces++
			}
		}
		if len(all) > 1 && (faces == 0 || private > 0 || len(all) > faces+1) {
			found = append(found, word+": "+strings.Join(places, ", "))
		}
	}
	return found, nil
}
