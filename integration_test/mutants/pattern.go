package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"regexp"
	"strings"
)

// pattern is a piece of Go source that is compared with a syntax tree. It is an expression,
// or a list of statements.
type pattern struct {
	expr  ast.Expr
	stmts []ast.Stmt
}

// In the source that is parsed, a wildcard is an identifier that begins with one of these.
const (
	oneMark  = "one__"
	someMark = "some__"
)

var wildcard = regexp.MustCompile(`\$\$?\w+`)

func escape(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "$$", someMark), "$", oneMark)
}

func parsePattern(text string) (pattern, error) {
	text = escape(text)
	if expr, err := parser.ParseExpr(text); err == nil {
		return pattern{expr: expr}, nil
	}
	stmts, err := parseStatements(text)
	return pattern{stmts: stmts}, err
}

func parseStatements(text string) ([]ast.Stmt, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "", "package p; func _() {\n"+text+"\n}", parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return file.Decls[0].(*ast.FuncDecl).Body.List, nil
}

// found is a part of a file that a pattern matches.
type found struct {
	start, end token.Pos
	bound      map[string][]ast.Node // by wildcard, without its dollar signs: what it stands for
	literal    []*ast.Ident          // the identifiers of the file that the pattern has by name
}

// in returns every part of a function's body that the pattern matches.
func (p pattern) in(body *ast.BlockStmt) (all []found) {
	if p.expr != nil {
		ast.Inspect(body, func(n ast.Node) bool {
			if expr, ok := n.(ast.Expr); ok {
				m := matching{bound: make(map[string][]ast.Node)}
				if m.same(reflect.ValueOf(&p.expr).Elem(), reflect.ValueOf(&expr).Elem()) {
					all = append(all, found{expr.Pos(), expr.End(), m.bound, m.literal})
				}
			}
			return true
		})
		return all
	}
	for _, list := range statementLists(body) {
		for i := range list {
			for j := i + 1; j <= len(list); j++ {
				m := matching{bound: make(map[string][]ast.Node)}
				if m.sameList(reflect.ValueOf(p.stmts), reflect.ValueOf(list[i:j])) {
					all = append(all, found{list[i].Pos(), list[j-1].End(), m.bound, m.literal})
				}
			}
		}
	}
	return all
}

// statementLists returns the lists of statements in a body. A statement that is not in a
// list, such as the first part of an if statement, is a list of one.
func statementLists(body *ast.BlockStmt) (lists [][]ast.Stmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		var alone []ast.Stmt
		switch s := n.(type) {
		case *ast.BlockStmt:
			lists = append(lists, s.List)
		case *ast.CaseClause:
			lists = append(lists, s.Body)
		case *ast.CommClause:
			lists, alone = append(lists, s.Body), []ast.Stmt{s.Comm}
		case *ast.IfStmt:
			alone = []ast.Stmt{s.Init, s.Else}
		case *ast.ForStmt:
			alone = []ast.Stmt{s.Init, s.Post}
		case *ast.SwitchStmt:
			alone = []ast.Stmt{s.Init}
		}
		for _, s := range alone {
			if s != nil {
				lists = append(lists, []ast.Stmt{s})
			}
		}
		return true
	})
	return lists
}

// matching is one comparison of a pattern with a syntax tree.
type matching struct {
	bound   map[string][]ast.Node
	literal []*ast.Ident
}

var (
	positionType = reflect.TypeFor[token.Pos]()
	commentType  = reflect.TypeFor[*ast.CommentGroup]()
)

// same compares a value of the pattern's tree with one of the source's. Positions and
// comments do not count.
func (m *matching) same(p, n reflect.Value) bool {
	switch p.Kind() {
	case reflect.Interface, reflect.Pointer:
		if p.IsNil() || n.IsNil() {
			return p.IsNil() == n.IsNil()
		}
		if node, ok := n.Interface().(ast.Node); ok {
			if name, ok := mark(p.Interface(), oneMark); ok {
				return m.bind(name, []ast.Node{node})
			}
		}
		if p.Elem().Type() != n.Elem().Type() {
			return false
		}
		if id, ok := n.Interface().(*ast.Ident); ok && p.Kind() == reflect.Pointer {
			m.literal = append(m.literal, id)
		}
		return m.same(p.Elem(), n.Elem())
	case reflect.Struct:
		for i := range p.NumField() {
			switch f := p.Type().Field(i); {
			case f.Type == positionType && f.Name == "Ellipsis": // f(list...)
				if p.Field(i).Int() == 0 != (n.Field(i).Int() == 0) {
					return false
				}
			case f.Type == positionType || f.Type == commentType || f.Name == "Obj":
			case !m.same(p.Field(i), n.Field(i)):
				return false
			}
		}
		return true
	case reflect.Slice:
		return m.sameList(p, n)
	}
	return p.Interface() == n.Interface()
}

func (m *matching) sameList(p, n reflect.Value) bool {
	if p.Len() == 0 {
		return n.Len() == 0
	}
	name, ok := mark(p.Index(0).Interface(), someMark)
	if !ok {
		return n.Len() > 0 && m.same(p.Index(0), n.Index(0)) && m.sameList(p.Slice(1, p.Len()), n.Slice(1, n.Len()))
	}
	var nodes []ast.Node
	for i := 0; ; i++ {
		try := matching{maps.Clone(m.bound), m.literal}
		if try.bind(name, nodes) && try.sameList(p.Slice(1, p.Len()), n.Slice(i, n.Len())) {
			*m = try
			return true
		}
		if i == n.Len() {
			return false
		}
		node, ok := n.Index(i).Interface().(ast.Node)
		if !ok {
			return false
		}
		nodes = append(nodes, node)
	}
}

// bind records what a wildcard stands for. A wildcard that occurs twice stands for the same
// source both times.
func (m *matching) bind(name string, nodes []ast.Node) bool {
	before, ok := m.bound[name]
	if !ok {
		m.bound[name] = nodes
		return true
	}
	again := matching{bound: make(map[string][]ast.Node)}
	return again.sameList(reflect.ValueOf(before), reflect.ValueOf(nodes))
}

// mark returns the name of the wildcard that a node of the pattern is.
func mark(node any, prefix string) (name string, ok bool) {
	if s, is := node.(*ast.ExprStmt); is {
		node = s.X
	}
	if id, is := node.(*ast.Ident); is && id != nil {
		return strings.CutPrefix(id.Name, prefix)
	}
	return "", false
}

// replacement returns the text that stands for Put where the pattern was found in source.
func (p pattern) replacement(f found, put string, text func(start, end token.Pos) string) (string, error) {
	var unknown error
	bare, err := parser.ParseExpr(escape(put))
	isExpr := err == nil && p.expr != nil
	result := wildcard.ReplaceAllStringFunc(put, func(w string) string {
		name := strings.TrimLeft(w, "$")
		nodes, ok := f.bound[name]
		switch {
		case !ok:
			unknown = fmt.Errorf("what replaces it has %s, which is neither in Find nor in With", w)
			return ""
		case len(nodes) == 0:
			return ""
		}
		s := text(nodes[0].Pos(), nodes[len(nodes)-1].End())
		if _, binary := nodes[0].(*ast.BinaryExpr); binary && len(nodes) == 1 {
			s = "(" + s + ")"
		}
		return s
	})
	if _, binary := bare.(*ast.BinaryExpr); binary && isExpr {
		result = "(" + result + ")"
	}
	return result, unknown
}
