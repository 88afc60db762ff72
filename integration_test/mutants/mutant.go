package main

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mutant is a mutant.Mutant as its package's test file has it in source.
type mutant struct {
	name    string
	breaks  string
	pkg     string // the folder of the package that it is in, below the module's root
	changes []change
	tests   []string
	by      string
}

// change is one replacement in one function.
type change struct {
	in        funcName
	find, put string
	with      names
}

// names has the functions that wildcards stand for, by the wildcard without its dollar sign.
type names map[string]string

// named returns a text with the names of functions in place of their wildcards.
func (n names) named(text string) string {
	return wildcard.ReplaceAllStringFunc(text, func(w string) string { return cmp.Or(n[w[1:]], w) })
}

// funcName is the name of a function, with its receiver's type if it is a method.
type funcName struct{ receiver, name string }

func (f funcName) String() string {
	if f.receiver == "" {
		return f.name
	}
	return f.receiver + "." + f.name
}

// numbered is a mutant with its position in the list of all mutants, counted from 1.
type numbered struct {
	mutant
	number int
}

// core is the package whose tests also find mutants in its internal packages. simulator is the one
// with the simulation, which has to find what the tests of core do not find.
const (
	core      = "zklock"
	simulator = "zklock/internal/simulation"
)

// tester is the folder of the package whose tests have to find the mutant.
func (m mutant) tester() string { return cmp.Or(m.by, m.pkg) }

// testers are the folders of all packages whose tests are tried on the mutant.
func (m mutant) testers() []string {
	if t := m.tester(); t != core && t != simulator {
		return []string{t}
	}
	return []string{core, simulator}
}

// packages returns the packages with mutants that the tests of package tester are tried on.
func packages(all []numbered, tester string) (found []string) {
	for _, m := range all {
		if slices.Contains(m.testers(), tester) && !slices.Contains(found, m.pkg) {
			found = append(found, m.pkg)
		}
	}
	return found
}

// load reads the mutants of all packages below root, those of other modules, too.
func load(root string) (all []numbered, err error) {
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != root && strings.HasPrefix(d.Name(), "."):
			return fs.SkipDir
		case d.IsDir() || !strings.HasPrefix(d.Name(), "mutants") || !strings.HasSuffix(d.Name(), "_test.go"):
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(file))
		if err != nil {
			return err
		}
		list, err := readList(file)
		for _, m := range list {
			m.pkg = filepath.ToSlash(rel)
			all = append(all, numbered{m, len(all) + 1})
		}
		return err
	})
	return all, err
}

// readList reads the mutants of one test file.
func readList(file string) (list []mutant, err error) {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, decl := range parsed.Decls {
		vars, ok := decl.(*ast.GenDecl)
		if !ok || vars.Tok != token.VAR {
			continue
		}
		for _, spec := range vars.Specs {
			for _, value := range spec.(*ast.ValueSpec).Values {
				literal, ok := value.(*ast.CompositeLit)
				if !ok {
					errs = append(errs, fmt.Errorf("%s: not a list of mutants", fset.Position(value.Pos())))
					continue
				}
				for _, e := range literal.Elts {
					m, err := readMutant(e)
					if err != nil {
						errs = append(errs, fmt.Errorf("%s: %w", fset.Position(e.Pos()), err))
					}
					list = append(list, m)
				}
			}
		}
	}
	return list, errors.Join(errs...)
}

func readMutant(e ast.Expr) (m mutant, err error) {
	var first change
	err = fields(e, func(key string, value ast.Expr) (err error) {
		switch key {
		case "Name":
			m.name, err = text(value)
		case "Breaks":
			m.breaks, err = text(value)
		case "By":
			m.by, err = text(value)
		case "Tests":
			return elements(value, func(e ast.Expr) error {
				name, err := text(e)
				m.tests = append(m.tests, name)
				return err
			})
		case "And":
			return elements(value, func(e ast.Expr) error {
				var c change
				err := fields(e, c.set)
				m.changes = append(m.changes, c)
				return err
			})
		default:
			return first.set(key, value)
		}
		return err
	})
	m.changes = append([]change{first}, m.changes...)
	return m, err
}

// set sets the field with that name.
func (c *change) set(key string, value ast.Expr) (err error) {
	switch key {
	case "In":
		c.in, err = reference(value)
	case "Find":
		c.find, err = text(value)
	case "Put":
		c.put, err = text(value)
	case "With":
		c.with = make(names)
		return elements(value, func(e ast.Expr) error {
			pair, ok := e.(*ast.KeyValueExpr)
			if !ok {
				return errors.New("the value of With is not a map")
			}
			name, err := text(pair.Key)
			if err != nil {
				return err
			}
			called, err := reference(pair.Value)
			c.with[name] = called.name
			return err
		})
	default:
		return fmt.Errorf("unknown field %s", key)
	}
	return err
}

// fields calls f for each field of a composite literal.
func fields(e ast.Expr, f func(key string, value ast.Expr) error) error {
	return elements(e, func(e ast.Expr) error {
		if pair, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := pair.Key.(*ast.Ident); ok {
				return f(key.Name, pair.Value)
			}
		}
		return errors.New("a field without its name")
	})
}

func elements(e ast.Expr, f func(ast.Expr) error) error {
	literal, ok := e.(*ast.CompositeLit)
	if !ok {
		return errors.New("not a composite literal")
	}
	for _, e := range literal.Elts {
		if err := f(e); err != nil {
			return err
		}
	}
	return nil
}

// text returns the value of a string literal, or of several with + between them.
func text(e ast.Expr) (string, error) {
	switch x := e.(type) {
	case *ast.BasicLit:
		if x.Kind == token.STRING {
			return strconv.Unquote(x.Value)
		}
	case *ast.BinaryExpr:
		left, err := text(x.X)
		if err != nil {
			return "", err
		}
		right, err := text(x.Y)
		return left + right, err
	}
	return "", errors.New("not a string literal")
}

// reference returns the function that an expression refers to: f, T.f, (*T).f, or pkg.F.
func reference(e ast.Expr) (f funcName, err error) {
	switch x := e.(type) {
	case *ast.Ident:
		return funcName{name: x.Name}, nil
	case *ast.IndexExpr: // an instance of a generic function
		return reference(x.X)
	case *ast.SelectorExpr:
		return funcName{typeName(x.X), x.Sel.Name}, nil
	}
	return f, errors.New("not a function's name")
}

// typeName returns the name of a receiver's type without its pointer and its parameters.
func typeName(e ast.Expr) string {
	switch x := e.(type) {
	case *ast.ParenExpr:
		return typeName(x.X)
	case *ast.StarExpr:
		return typeName(x.X)
	case *ast.IndexExpr:
		return typeName(x.X)
	case *ast.Ident:
		return x.Name
	}
	return ""
}
