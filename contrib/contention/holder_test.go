package contention

import (
	"testing"

	"github.com/zklock/go-zklock/zklock"
)

func TestHostClass(t *testing.T) {
	for host, want := range map[string]string{
		"web-3": "web", "web-7d9f8b6c4-x2k9p": "web", "web-frontend-x7abc-2": "web-frontend", "web12.example.com": "web",
		"localhost": "localhost", "ip-10-0-3-1": "ip", "10.0.3.1": "", "": "",
	} {
		if got := hostClass(host); got != want {
			t.Errorf("the class of host %q is %q, want %q", host, got, want)
		}
	}
}

func TestHolderOf(t *testing.T) {
	for want, e := range map[string]zklock.WaitEvent{
		"held by web":             {Position: 1, Ahead: zklock.Contender{Node: "n", Host: "web-1", Label: "secret"}},
		"held by shop":            {Position: 4, Ahead: zklock.Contender{Held: true, Host: "shop"}},
		"behind web":              {Position: 2, Ahead: zklock.Contender{Node: "n", Host: "web-1"}},
		"behind shop":             {Position: 1, Ahead: zklock.Contender{Host: "shop"}}, // a goroutine of this process
		"held by another client":  {Position: 1, Ahead: zklock.Contender{Node: "n"}},
		"held by another library": {Position: 1, Ahead: zklock.Contender{Node: "n", Host: "web-1", Foreign: true}},
	} {
		if got := New().holderOf(&e); got != want {
			t.Errorf("%+v: %q, want %q", e, got, want)
		}
	}
}

func TestClassOf(t *testing.T) {
	for name, want := range map[string]string{
		"orders/42":                 "orders/*",
		"tenant-7/orders/42":        "tenant-7/*",
		"hourly-report":             "hourly-report",
		"customer-4711":             "customer-*",
		"42":                        "*",
		"orders/1,orders/2":         "orders/*",
		"orders/1,users/2,orders/3": "orders/*,users/*",
		"orders/1,bob":              "orders/*,*",
		"":                          "",
	} {
		if got := classOf(name); got != want {
			t.Errorf("the class of %q is %q, want %q", name, got, want)
		}
	}
}
