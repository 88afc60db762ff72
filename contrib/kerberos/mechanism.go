package kerberos

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/config"

	"github.com/zklock/go-zklock/zklock/driver"
	"github.com/zklock/go-zklock/zklock/zkdriver"
)

var _ zkdriver.Mechanism = (*Mechanism)(nil)

// Mechanism is SASL's mechanism GSSAPI with one identity. Make it with [Keytab] or [Cache].
// It may be shared by several clients, and is safe for concurrent use.
type Mechanism struct {
	source   source
	settings settings
	names    names

	mu       sync.Mutex
	tgt      *ticket            // guarded by mu; of the client's realm
	tickets  map[string]*ticket // guarded by mu; of the servers, by principal
	fetching chan struct{}      // guarded by mu; closed when the fetch that is under way has ended; nil: there is none
	again    time.Time          // guarded by mu; after a failed fetch: not before then, if there is a ticket
}

const (
	// pauseAfterFailure is how long a ticket that is to be renewed is used without another
	// attempt, after one has failed.
	pauseAfterFailure = 5 * time.Second

	// patience bounds the wait for the KDC if there is a ticket that can be used instead.
	patience = time.Second
)

// Keytab returns a mechanism that authenticates as a principal with the principal's keys from a
// file. The principal is written as user, user/host or user@REALM; without a realm it has the
// default realm of krb5.conf. If it is "", it is the first one in the file. The file is read
// for each ticket-granting ticket, so keys can be replaced.
func Keytab(principal, file string, opts ...Option) *Mechanism {
	return newMechanism(&keytabSource{principal, file}, opts)
}

// Cache returns a mechanism that authenticates with the tickets in a credential cache, such as
// kinit makes: a file, with or without FILE: in front of it. If it is "", it is that of the
// environment: see the package's documentation.
func Cache(file string, opts ...Option) *Mechanism {
	return newMechanism(&cacheSource{file: file}, opts)
}

func newMechanism(s source, opts []Option) *Mechanism {
	m := &Mechanism{source: s, tickets: make(map[string]*ticket)}
	for _, o := range opts {
		if o != nil {
			o.apply(&m.settings)
		}
	}
	return m
}

// Name implements zkdriver.Mechanism.
func (m *Mechanism) Name() string { return "GSSAPI" }

// Start implements zkdriver.Mechanism. It returns when there is a ticket for the server.
func (m *Mechanism) Start(ctx context.Context, host string) (zkdriver.Exchange, error) {
	cfg, err := m.settings.load()
	if err != nil {
		return nil, err
	}
	server, err := m.principal(ctx, cfg, host)
	if err != nil {
		return nil, err
	}
	t, err := m.ticket(ctx, cfg, server)
	if err != nil {
		return nil, fmt.Errorf("no ticket for %v: %w", server, err)
	}
	if !isAES(t.key.KeyType) {
		return nil, fmt.Errorf("the ticket for %v has a key of type %s, and only AES is supported: %s (%w)", server, keyType(t.key.KeyType), adviceAES, driver.ErrAuthFailed)
	}
	return &exchange{ticket: t}, nil
}

// ticket returns a ticket for a server. One caller at a time asks the KDC.
func (m *Mechanism) ticket(ctx context.Context, cfg *config.Config, server principal) (*ticket, error) {
	key := server.String()
	for {
		now := time.Now()
		m.mu.Lock()
		t := m.tickets[key]
		usable := t != nil && now.Before(t.end)
		wait := m.fetching
		if usable && (now.Before(t.renew) || wait != nil || now.Before(m.again)) {
			m.mu.Unlock()
			return t, nil
		}
		if wait == nil {
			done := make(chan struct{})
			m.fetching = done
			tgt := m.tgt
			m.mu.Unlock()
			return m.fetch(ctx, cfg, server, tgt, t, usable, done)
		}
		m.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// fetch asks the KDC for a ticket, on behalf of all callers that wait for done. If it gets none,
// it returns old, if that is usable.
func (m *Mechanism) fetch(ctx context.Context, cfg *config.Config, server principal, tgt, old *ticket, usable bool, done chan struct{}) (*ticket, error) {
	if usable {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	k := &kdc{cfg}
	fresh, err := m.source.grant(ctx, k, tgt)
	var t *ticket
	if err == nil {
		t, err = k.serviceTicket(ctx, fresh, server)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fetching = nil
	close(done)
	if fresh != nil {
		m.tgt = fresh
	}
	if err == nil {
		m.tickets[server.String()] = t
		return t, nil
	}
	m.again = time.Now().Add(pauseAfterFailure)
	if usable {
		return old, nil
	}
	return nil, err
}
