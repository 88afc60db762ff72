package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Building the tests once for each mutant would take most of the time. So all mutants
// of a package are built into one binary. Each function that a mutant changes is in it
// twice: the original, and a changed copy under another name. The original begins with a
// statement that calls the copy if that mutant is active. An environment variable
// selects the active mutant.

const (
	// switchVariable selects the active mutant by its number, from 1 on.
	switchVariable = "ZKLOCK_MUTANT"

	switchFile = "mutant_switch.go"
	switchText = `package %s

import (
	"os"
	"strconv"
)

var activeMutant, _ = strconv.Atoi(os.Getenv(%q))
`
)

// source is the source of a package, without its tests, as it is built on this system.
type source struct {
	pkg   string
	fset  *token.FileSet
	files map[string]*sourceFile // by name
}

type sourceFile struct {
	text string
	tree *ast.File
}

func readSource(root, pkg string) (*source, error) {
	dir := filepath.Join(root, filepath.FromSlash(pkg))
	built, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	s := &source{pkg: pkg, fset: token.NewFileSet(), files: make(map[string]*sourceFile)}
	for _, name := range built.GoFiles {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, err
		}
		tree, err := parser.ParseFile(s.fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		s.files[name] = &sourceFile{string(text), tree}
	}
	return s, nil
}

// function finds a declared function.
func (s *source) function(name funcName) (file string, decl *ast.FuncDecl) {
	for file, f := range s.files {
		for _, d := range f.tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && nameOf(fn) == name {
				return file, fn
			}
		}
	}
	return "", nil
}

func nameOf(f *ast.FuncDecl) funcName {
	if f.Recv == nil {
		return funcName{name: f.Name.Name}
	}
	return funcName{typeName(f.Recv.List[0].Type), f.Name.Name}
}

func (s *source) offset(p token.Pos) int { return s.fset.Position(p).Offset }

// site is where a change is made: one part of one function, and the text that replaces it.
type site struct {
	file string
	decl *ast.FuncDecl
	found
	text string
}

// locate finds the only place for a change.
func (s *source) locate(c change) (site, error) {
	file, decl := s.function(c.in)
	if decl == nil {
		return site{}, fmt.Errorf("%s has no function %s", s.pkg, c.in)
	}
	p, err := parsePattern(c.with.named(c.find))
	if err != nil {
		return site{}, fmt.Errorf("in Find: %w", err)
	}
	all := p.in(decl.Body)
	if len(all) != 1 {
		return site{}, fmt.Errorf("%s has this %d times, not once: %s", c.in, len(all), c.find)
	}
	text := s.files[file].text
	put, err := p.replacement(all[0], c.with.named(c.put), func(start, end token.Pos) string { return text[s.offset(start):s.offset(end)] })
	return site{file, decl, all[0], put}, err
}

// graft returns the files, by name, that replace or extend the package's files in the build.
// The error lists every mutant that cannot be added.
func (s *source) graft(list []numbered) (map[string]string, error) {
	calls := make(map[*ast.FuncDecl]string) // the statements to insert at a function's beginning
	copies := make(map[string]string)       // by file: the changed functions
	var errs []error
	for _, m := range list {
		if m.pkg != s.pkg {
			continue
		}
		if err := s.graftOne(m, calls, copies); err != nil {
			errs = append(errs, fmt.Errorf("mutant %s: %w", m.name, err))
		}
	}
	files := map[string]string{switchFile: fmt.Sprintf(switchText, path.Base(s.pkg), switchVariable)}
	for name, f := range s.files {
		if copies[name] == "" {
			continue
		}
		var text strings.Builder
		after := 0
		for _, d := range f.tree.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && calls[fn] != "" {
				at := s.offset(fn.Body.Lbrace) + 1
				text.WriteString(f.text[after:at] + calls[fn])
				after = at
			}
		}
		files[name] = text.String() + f.text[after:] + copies[name]
	}
	return files, errors.Join(errs...)
}

// graftOne adds the calls and the copies that one mutant needs.
func (s *source) graftOne(m numbered, calls map[*ast.FuncDecl]string, copies map[string]string) error {
	sites := make(map[*ast.FuncDecl][]site)
	for _, c := range m.changes {
		at, err := s.locate(c)
		if err != nil {
			return err
		}
		sites[at.decl] = append(sites[at.decl], at)
	}
	for decl, list := range sites {
		call, err := callOf(decl, m.number)
		if err != nil {
			return err
		}
		calls[decl] += call
		file := list[0].file
		text := s.files[file].text
		list = append(list, site{found: found{start: decl.Name.Pos(), end: decl.Name.End()}, text: alias(decl.Name.Name, m.number)})
		slices.SortFunc(list, func(a, b site) int { return cmp.Compare(a.start, b.start) })
		after := s.offset(decl.Type.Pos())
		var copied strings.Builder
		for _, at := range list {
			if s.offset(at.start) < after {
				return errors.New("two of its changes overlap")
			}
			copied.WriteString(text[after:s.offset(at.start)] + at.text)
			after = s.offset(at.end)
		}
		copied.WriteString(text[after:s.offset(decl.End())])
		copies[file] += fmt.Sprintf("\n//line %s:1\n%s\n", m.name, &copied)
	}
	return nil
}

// alias is the name of a function's copy that mutant n has changed.
func alias(function string, n int) string { return fmt.Sprintf("%sMutant%d", function, n) }

// callOf returns the statement that calls mutant n's copy instead of the function.
func callOf(f *ast.FuncDecl, n int) (string, error) {
	var args []string
	for _, p := range f.Type.Params.List {
		if len(p.Names) == 0 {
			return "", fmt.Errorf("%s has a parameter without a name", f.Name.Name)
		}
		for _, name := range p.Names {
			if name.Name == "_" {
				return "", fmt.Errorf("%s has a parameter without a name", f.Name.Name)
			}
			arg := name.Name
			if _, variadic := p.Type.(*ast.Ellipsis); variadic {
				arg += "..."
			}
			args = append(args, arg)
		}
	}
	callee := alias(f.Name.Name, n)
	if f.Recv != nil {
		names := f.Recv.List[0].Names
		if len(names) == 0 || names[0].Name == "_" {
			return "", fmt.Errorf("%s has a receiver without a name", f.Name.Name)
		}
		callee = names[0].Name + "." + callee
	}
	if t := f.Type.TypeParams; t != nil {
		var names []string
		for _, p := range t.List {
			for _, name := range p.Names {
				names = append(names, name.Name)
			}
		}
		callee += "[" + strings.Join(names, ", ") + "]"
	}
	statement := fmt.Sprintf("%s(%s)", callee, strings.Join(args, ", "))
	if r := f.Type.Results; r != nil && len(r.List) > 0 {
		return fmt.Sprintf("\nif activeMutant == %d { return %s };", n, statement), nil
	}
	return fmt.Sprintf("\nif activeMutant == %d { %s; return };", n, statement), nil
}
