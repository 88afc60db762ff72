package zklockvet

import (
	"go/ast"
	"go/token"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// deferRelease returns the fix: a deferred release behind the check of the error. There is one if
// nothing else in the function gives the lock away, if the acquisition is followed by the check of its
// error, which returns, and outside of loops, where deferred calls pile up. A goroutine may work on
// under the lock.
func (h *held) deferRelease(files *token.FileSet) []analysis.SuggestedFix {
	if len(h.gives) > 0 || h.err == nil || !h.hasContext(h.at) {
		return nil
	}
	for range h.fn.Preorder((*ast.GoStmt)(nil)) {
		return nil
	}
	at, ok := h.fn.FindNode(h.at)
	if !ok {
		return nil
	}
	for c := range at.Enclosing((*ast.ForStmt)(nil), (*ast.RangeStmt)(nil), (*ast.FuncLit)(nil), (*ast.FuncDecl)(nil)) {
		if c.Node() == h.fn.Node() {
			break
		}
		return nil
	}
	ctx, ok := ast.Unparen(h.call.Args[0]).(*ast.Ident)
	next, follows := at.NextSibling()
	if !ok || !follows {
		return nil
	}
	check, ok := next.Node().(*ast.IfStmt)
	if !ok || check.Init != nil || check.Else != nil || len(check.Body.List) == 0 {
		return nil
	}
	cond, ok := check.Cond.(*ast.BinaryExpr)
	if !ok || cond.Op != token.NEQ || h.variable(cond.X) != h.err || !h.info.Types[cond.Y].IsNil() {
		return nil
	}
	if _, returns := check.Body.List[len(check.Body.List)-1].(*ast.ReturnStmt); !returns {
		return nil
	}
	method := "Release"
	if p, ok := types.Unalias(h.lock.Type()).(*types.Pointer); ok && isNamed(p.Elem(), election, "Term") {
		method = "Resign"
	}
	indent := strings.Repeat("\t", files.Position(check.Pos()).Column-1)
	text := "\n" + indent + "defer " + h.lock.Name() + "." + method + "(context.WithoutCancel(" + ctx.Name + "))"
	return []analysis.SuggestedFix{{Message: "Release with defer", TextEdits: []analysis.TextEdit{{Pos: check.End(), End: check.End(), NewText: []byte(text)}}}}
}
