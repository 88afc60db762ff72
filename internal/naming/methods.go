package naming

import (
	"fmt"
	"strings"
)

// Methods is a table with one value for each method of a service, or for all of them.
type Methods[V any] map[string]V

// MustParseMethods copies a table. It panics if a key is neither a full method name, as in
// "/shop.v1.Orders/Pay", nor all methods of a service, as in "/shop.v1.Orders/*". owner is the
// exported function that got the table; the panic names it.
func MustParseMethods[V any](owner string, table map[string]V) Methods[V] {
	m := make(Methods[V], len(table))
	for method, value := range table {
		service, name, ok := strings.Cut(strings.TrimPrefix(method, "/"), "/")
		if !strings.HasPrefix(method, "/") || !ok || service == "" || name == "" || strings.Contains(name, "/") {
			panic(fmt.Sprintf("%s with %q: want /package.Service/Method or /package.Service/*", owner, method))
		}
		m[method] = value
	}
	return m
}

// Of returns the value of a method; the zero value if the table has none. The full name has
// precedence.
func (m Methods[V]) Of(fullMethod string) V {
	v, ok := m[fullMethod]
	if !ok {
		v = m[fullMethod[:strings.LastIndexByte(fullMethod, '/')+1]+"*"]
	}
	return v
}
