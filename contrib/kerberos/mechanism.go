package kerberos

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/errorcode"

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

	turn chan struct{} // holds a value while a caller asks the KDC
	tgt  *ticket       // of the client's realm; the caller that has the turn uses it

	mu      sync.Mutex
	tickets map[string]*ticket // guarded by mu; of the servers, by principal
}

const (
	// pauseAfterFailure is how long a ticket that is to be renewed is used without another
	// attempt, after one has failed.
	pauseAfterFailure = 5 * time.Second

	// patience bounds the wait for the KDC if there is a ticket that can be used instead.
	patience = time.Second

	// exchangeTime is what an exchange with a server may take. A younger ticket is not replaced
	// because no server has accepted it yet.
	exchangeTime = time.Second
)

// Keytab returns a mechanism that authenticates as a principal with the principal's keys from a
// file. The principal is written as user, user/host or user@REALM; without a realm it has the
// default realm of krb5.conf. If it is "", it is the first one in the file. The file is read
// for each ticket-granting ticket, so keys can be replaced.
func Keytab(principal, file string, opts ...Option) *Mechanism {
	return newMechanism(&keytabSource{principal: principal, file: file}, opts)
}

// Cache returns a mechanism that authenticates with the tickets in a credential cache, such as
// kinit makes: a file, with or without FILE: in front of it. If it is "", it is that of the
// environment: see the package's documentation.
func Cache(file string, opts ...Option) *Mechanism {
	return newMechanism(&cacheSource{file: file}, opts)
}

func newMechanism(s source, opts []Option) *Mechanism {
	m := &Mechanism{source: s, turn: make(chan struct{}, 1), tickets: make(map[string]*ticket)}
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
	server, known, err := m.principal(ctx, cfg, host)
	if err != nil {
		return nil, err
	}
	t, err := m.ticket(ctx, cfg, server)
	if !known && refusalCode(err) == errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN {
		return nil, fmt.Errorf("the KDC does not know %v, and DNS has not answered what the canonical name of %s is: set rdns = false in %s if the principals of the servers have the hosts of the URL", server, host, cfg.file)
	}
	if err != nil {
		return nil, err
	}
	if !isAES(t.key.KeyType) {
		return nil, fmt.Errorf("the ticket for %v has a key of type %s, and only AES is supported: %s (%w)", server, keyType(t.key.KeyType), adviceAES, driver.ErrAuthFailed)
	}
	return &exchange{ticket: t}, nil
}

// ticket returns a ticket for a server. One caller at a time asks the KDC.
func (m *Mechanism) ticket(ctx context.Context, cfg *configuration, server principal) (*ticket, error) {
	old, due := m.known(server)
	if !due {
		return old, nil
	}
	if old != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, patience)
		defer cancel()
	}
	select {
	case m.turn <- struct{}{}:
	default:
		if old != nil {
			return old, nil
		}
		select {
		case m.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, fmt.Errorf("no ticket yet: %w", ctx.Err())
		}
	}
	defer func() { <-m.turn }()
	if t, due := m.known(server); !due {
		return t, nil // another caller has fetched it
	}
	t, err := m.fetch(ctx, &kdc{cfg}, server)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		m.tickets[server.String()] = t
		return t, nil
	case old != nil:
		old.again = time.Now().Add(pauseAfterFailure)
		return old, nil
	}
	return nil, err
}

// known returns the ticket for a server, and whether the KDC is to be asked for another one. The ticket
// is nil if there is none, or if it has expired.
func (m *Mechanism) known(server principal) (t *ticket, due bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	t = m.tickets[server.String()]
	if t == nil || !now.Before(t.end) {
		return nil, true
	}
	refused := t.doubtful.Load() && now.Sub(t.got) > exchangeTime
	return t, (refused || !now.Before(t.renew)) && !now.Before(t.again)
}

// fetch asks the KDC for a ticket. The caller has the turn.
func (m *Mechanism) fetch(ctx context.Context, k *kdc, server principal) (*ticket, error) {
	had := m.tgt
	tgt, err := m.source.grant(ctx, k, had)
	if err != nil {
		return nil, err
	}
	m.tgt = tgt
	t, err := k.serviceTicket(ctx, tgt, server)
	if code := refusalCode(err); tgt != had || code == 0 || code == errorcode.KDC_ERR_S_PRINCIPAL_UNKNOWN {
		return t, err
	}
	// The KDC may have had other keys when it granted the ticket. MIT's answers KRB_ERR_GENERIC then.
	if tgt, err := m.source.grant(ctx, k, nil); err == nil {
		if t, err := k.serviceTicket(ctx, tgt, server); err == nil {
			m.tgt = tgt
			return t, nil
		}
	}
	return nil, err
}
