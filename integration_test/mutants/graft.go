package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
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

// numbered is a mutant with its position in the list of all mutants, counted from 1.
type numbered struct {
	mutant
	number int
}

// graft returns the files, by name, that replace or extend the files of a package in the
// build. The error lists every mutant that cannot be added.
func graft(root, pkg string, list []numbered) (map[string]string, error) {
	files := map[string]string{switchFile: fmt.Sprintf(switchText, path.Base(pkg), switchVariable)}
	byFile := make(map[string][]numbered)
	for _, m := range list {
		if m.pkg() == pkg {
			byFile[m.file] = append(byFile[m.file], m)
		}
	}
	var errs []error
	for file, mutants := range byFile {
		source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			return nil, err
		}
		text, err := graftFile(string(source), mutants)
		errs = append(errs, err)
		files[path.Base(file)] = text
	}
	return files, errors.Join(errs...)
}

// function is a declared function in a file's text.
type function struct {
	decl *ast.FuncDecl
	text string
	body int // offset of the byte after the opening brace, in the file
	name int // offset of the function's name, in text
}

// graftFile adds mutants to a file's text.
func graftFile(source string, mutants []numbered) (string, error) {
	originals, rest, err := functions(source)
	if err != nil {
		return "", err
	}
	calls := make(map[string]string) // by function: the statements to insert at its beginning
	var copies strings.Builder
	var errs []error
	for _, m := range mutants {
		changed, err := m.apply(source)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		changedFunctions, changedRest, err := functions(changed)
		if err != nil {
			errs = append(errs, fmt.Errorf("mutant %s: %w", m.name, err))
			continue
		}
		grafted := false
		for key, f := range changedFunctions {
			original, ok := originals[key]
			if !ok || original.text == f.text {
				continue
			}
			grafted = true
			call, err := f.call(m.number)
			if err != nil {
				errs = append(errs, fmt.Errorf("mutant %s: %w", m.name, err))
				continue
			}
			calls[key] += call
			end := f.name + len(f.decl.Name.Name)
			fmt.Fprintf(&copies, "\n//line %s:1\n%s%s%s\n", m.name, f.text[:f.name], f.alias(m.number), f.text[end:])
		}
		if !grafted || changedRest != rest || len(changedFunctions) != len(originals) {
			errs = append(errs, fmt.Errorf("mutant %s: it has to change the body of at least one function, and nothing else", m.name))
		}
	}
	at := make(map[int]string)
	for key, call := range calls {
		at[originals[key].body] = call
	}
	var text strings.Builder
	for i := range len(source) {
		text.WriteString(at[i])
		text.WriteByte(source[i])
	}
	return text.String() + copies.String(), errors.Join(errs...)
}

// functions finds the functions of a file. rest is the file's text without them.
func functions(source string) (found map[string]function, rest string, err error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", source, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return nil, "", err
	}
	found = make(map[string]function)
	offset := func(p token.Pos) int { return fset.Position(p).Offset }
	after := 0
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		start, end := offset(f.Pos()), offset(f.End())
		if f.Doc != nil {
			start = offset(f.Type.Pos())
		}
		rest += source[after:start]
		after = end
		key := f.Name.Name
		if f.Recv != nil {
			t := f.Recv.List[0].Type
			key = source[offset(t.Pos()):offset(t.End())] + "." + key
		}
		found[key] = function{f, source[start:end], offset(f.Body.Lbrace) + 1, offset(f.Name.Pos()) - start}
	}
	return found, rest + source[after:], nil
}

// alias is the name of the function's copy that mutant n has changed.
func (f function) alias(n int) string { return fmt.Sprintf("%sMutant%d", f.decl.Name.Name, n) }

// call returns the statement that calls mutant n's copy instead of this function.
func (f function) call(n int) (string, error) {
	var args []string
	for _, p := range f.decl.Type.Params.List {
		if len(p.Names) == 0 {
			return "", fmt.Errorf("%s has a parameter without a name", f.decl.Name.Name)
		}
		for _, name := range p.Names {
			if name.Name == "_" {
				return "", fmt.Errorf("%s has a parameter without a name", f.decl.Name.Name)
			}
			arg := name.Name
			if _, variadic := p.Type.(*ast.Ellipsis); variadic {
				arg += "..."
			}
			args = append(args, arg)
		}
	}
	callee := f.alias(n)
	if f.decl.Recv != nil {
		names := f.decl.Recv.List[0].Names
		if len(names) == 0 || names[0].Name == "_" {
			return "", fmt.Errorf("%s has a receiver without a name", f.decl.Name.Name)
		}
		callee = names[0].Name + "." + callee
	}
	if t := f.decl.Type.TypeParams; t != nil {
		var names []string
		for _, p := range t.List {
			for _, name := range p.Names {
				names = append(names, name.Name)
			}
		}
		callee += "[" + strings.Join(names, ", ") + "]"
	}
	statement := fmt.Sprintf("%s(%s)", callee, strings.Join(args, ", "))
	if r := f.decl.Type.Results; r != nil && len(r.List) > 0 {
		return fmt.Sprintf("\nif activeMutant == %d { return %s };", n, statement), nil
	}
	return fmt.Sprintf("\nif activeMutant == %d { %s; return };", n, statement), nil
}
