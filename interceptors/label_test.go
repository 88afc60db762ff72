package interceptors_test

import (
	"context"
	"testing"

	"github.com/zklock/go-zklock/interceptors"
)

// By default a call's label is the full name of its method.
func TestDefaultLabelIsTheMethod(t *testing.T) {
	w := newWorld(t)
	for name, c := range map[string]struct {
		opts []interceptors.Option
		want string
	}{
		"default": {nil, methodPay},
		"none":    {[]interceptors.Option{interceptors.WithLabel(nil)}, ""},
		"mine":    {[]interceptors.Option{interceptors.WithLabel(func(context.Context, interceptors.Call) string { return "mine" })}, "mine"},
	} {
		_, err := callUnary(t.Context(), interceptors.UnaryServerInterceptor(w.fixed, c.opts...), func(ctx context.Context, _ any) (any, error) {
			found, err := w.client.Contenders(ctx, "orders/42")
			if err != nil || len(found) != 1 || found[0].Label != c.want {
				t.Errorf("%s: %+v, %v; want the label %q", name, found, err, c.want)
			}
			return nil, nil
		})
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
