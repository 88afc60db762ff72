package zklock_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/memdriver"
)

// longACL returns an access list with that many entries that allow everything.
func longACL(entries int) string {
	open := driver.OpenACL(driver.PermAll)[0]
	list := []string{open.Scheme + ":" + open.ID + ":cdrwa"}
	for i := range entries - 1 {
		list = append(list, fmt.Sprintf("ip:10.1.%d.%d:cdrwa", i/250, i%250))
	}
	return strings.Join(list, ",")
}

// Many names at once share transactions, which stay within what servers read, also with a long access list.
// A caller never gets an error about what others asked for.
func TestGroupsCountTheAccessList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := memdriver.New(memdriver.WithLatency(time.Millisecond))
		c := connect(t, e.Connector(), map[string]string{"acl": longACL(100)})
		const many = 1000
		for range 2 { // fresh names, then known ones
			failed := make(chan error, many)
			cost := cost(e, func() {
				for i := range many {
					go func() {
						l, err := c.Mutex(fmt.Sprint(i)).Acquire(t.Context())
						if err == nil {
							err = l.Release(t.Context())
						}
						failed <- err
					}()
				}
				for range many {
					if err := <-failed; err != nil {
						t.Errorf("acquire: %v", err)
					}
				}
			})
			if cost.Multis > many/2 {
				t.Errorf("%d names cost %d transactions, want groups", many, cost.Multis)
			}
		}
	})
}
