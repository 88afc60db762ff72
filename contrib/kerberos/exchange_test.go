package kerberos

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gofork/encoding/asn1"
	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/iana/msgtype"
	"github.com/jcmturner/gokrb5/v8/iana/nametype"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// newKey returns a random key of a type.
func newKey(t testing.TB, id int32) types.EncryptionKey {
	t.Helper()
	key := make([]byte, map[int32]int{17: 16, 18: 32, 19: 16, 20: 32, 23: 16}[id])
	_, _ = rand.Read(key)
	return types.EncryptionKey{KeyType: id, KeyValue: key}
}

// aTicket returns a ticket with a session key of a type. Only a server with the service's key could
// read it.
func aTicket(t testing.TB, id int32) *ticket {
	t.Helper()
	return &ticket{
		client: principal{types.NewPrincipalName(nametype.KRB_NT_PRINCIPAL, "svc"), "R"},
		ticket: messages.Ticket{TktVNO: 5, Realm: "R", SName: types.NewPrincipalName(nametype.KRB_NT_PRINCIPAL, "zookeeper/zk1"),
			EncPart: types.EncryptedData{EType: id, KVNO: 1, Cipher: []byte("sealed")}},
		key: newKey(t, id), end: time.Now().Add(time.Hour),
	}
}

// acceptor is the server's side of an exchange.
type acceptor struct {
	t             testing.TB
	key           types.EncryptionKey // of the ticket
	subkey        *types.EncryptionKey
	authenticator types.Authenticator
}

// read reads the client's first token.
func (a *acceptor) read(token []byte) {
	a.t.Helper()
	id, message, err := unframe(token)
	if err != nil || id != idRequest {
		a.t.Fatalf("token %x: %v", token, err)
	}
	var r messages.APReq
	if err := r.Unmarshal(message); err != nil {
		a.t.Fatal(err)
	}
	if err := r.DecryptAuthenticator(a.key); err != nil {
		a.t.Fatal(err)
	}
	a.authenticator = r.Authenticator
	sum := a.authenticator.Cksum
	if !types.IsFlagSet(&r.APOptions, flags.APOptionMutualRequired) || sum.CksumType != 0x8003 || len(sum.Checksum) != 24 ||
		binary.LittleEndian.Uint32(sum.Checksum) != 16 || binary.LittleEndian.Uint32(sum.Checksum[20:]) != contextMutual|contextIntegrity {
		a.t.Errorf("options %x, checksum %+v", r.APOptions.Bytes, sum)
	}
}

// reply makes the server's proof.
func (a *acceptor) reply(key types.EncryptionKey, at time.Time, micros int) []byte {
	a.t.Helper()
	part := messages.EncAPRepPart{CTime: at, Cusec: micros, SequenceNumber: 7}
	if a.subkey != nil {
		part.Subkey = *a.subkey
	}
	b, err := asn1.Marshal(part)
	if err != nil {
		a.t.Fatal(err)
	}
	sealed, err := crypto.GetEncryptedData(asn1tools.AddASNAppTag(b, asnAppTag.EncAPRepPart), key, keyusage.AP_REP_ENCPART, 0)
	if err != nil {
		a.t.Fatal(err)
	}
	if b, err = asn1.Marshal(messages.APRep{PVNO: 5, MsgType: msgtype.KRB_AP_REP, EncPart: sealed}); err != nil {
		a.t.Fatal(err)
	}
	return frame(idReply, asn1tools.AddASNAppTag(b, asnAppTag.APREP))
}

// offer makes the token with the server's security layers.
func (a *acceptor) offer(layers byte) []byte {
	a.t.Helper()
	key, own := a.key, byte(flagAcceptor)
	if a.subkey != nil {
		key, own = *a.subkey, own|flagSubkey
	}
	token, err := wrap([]byte{layers, 1, 0, 0}, key, own, 7, keyusage.GSSAPI_ACCEPTOR_SEAL)
	if err != nil {
		a.t.Fatal(err)
	}
	return token
}

// TestExchange runs the exchange with keys of each type, with a subkey of the server and without.
func TestExchange(t *testing.T) {
	for _, id := range aesTypes {
		for _, subkey := range []bool{false, true} {
			x := &exchange{ticket: aTicket(t, id)}
			a := &acceptor{t: t, key: x.ticket.key}
			if subkey {
				key := newKey(t, aesTypes[len(aesTypes)-1])
				a.subkey = &key
			}
			token, done, err := x.Step(nil)
			if err != nil || done {
				t.Fatal(done, err)
			}
			a.read(token)
			token, done, err = x.Step(a.reply(a.key, a.authenticator.CTime, a.authenticator.Cusec))
			if token == nil || len(token) != 0 || done || err != nil {
				t.Fatalf("%x, %v, %v, want an empty token", token, done, err)
			}
			token, done, err = x.Step(a.offer(7))
			if !done || err != nil {
				t.Fatal(done, err)
			}
			key := a.key
			if subkey {
				key = *a.subkey
			}
			if token[2] != 0 && token[2] != flagSubkey || (token[2] == flagSubkey) != subkey || binary.BigEndian.Uint64(token[8:]) != uint64(a.authenticator.SeqNumber) {
				t.Errorf("header %x, sequence number %d", token[:wrapHeader], a.authenticator.SeqNumber)
			}
			sum, err := checksum(token[wrapHeader:wrapHeader+4], append([]byte{5, 4, token[2], 0xff, 0, 0, 0, 0}, token[8:wrapHeader]...), key, keyusage.GSSAPI_INITIATOR_SEAL)
			if err != nil || !bytes.Equal(token[wrapHeader:wrapHeader+4], []byte{noSecurityLayer, 0, 0, 0}) || !bytes.Equal(token[wrapHeader+4:], sum) {
				t.Errorf("the choice is %x, want checksum %x, %v", token, sum, err)
			}
			if _, _, err := x.Step(nil); err == nil {
				t.Error("a fourth step")
			}
		}
	}
}

// TestExchangeRefusesServers: a server that does not have the service's key, or replays another
// server's proof, is refused.
func TestExchangeRefusesServers(t *testing.T) {
	id := aesTypes[0]
	for name, c := range map[string]struct {
		reply func(*acceptor) []byte
		offer func(*acceptor) []byte // nil: the reply is refused
		says  string
	}{
		"another key": {func(a *acceptor) []byte {
			return a.reply(newKey(t, id), a.authenticator.CTime, a.authenticator.Cusec)
		}, nil, "not proven its identity"},
		"another time": {func(a *acceptor) []byte {
			return a.reply(a.key, a.authenticator.CTime.Add(time.Second), a.authenticator.Cusec)
		}, nil, "to another request"},
		"another microsecond": {func(a *acceptor) []byte {
			return a.reply(a.key, a.authenticator.CTime, a.authenticator.Cusec^1)
		}, nil, "to another request"},
		"no token": {func(*acceptor) []byte { return []byte{} }, nil, "malformed"},
		"an echo":  {func(a *acceptor) []byte { return frame(idRequest, []byte("x")) }, nil, "malformed"},
		"no reply": {func(a *acceptor) []byte { return frame(idReply, []byte("x")) }, nil, "malformed"},
		"DIGEST":   {func(*acceptor) []byte { return []byte(`realm="zk-sasl-md5",nonce="x"`) }, nil, "DIGEST-MD5"},
		"an error": {func(a *acceptor) []byte {
			e := messages.NewKRBError(types.NewPrincipalName(1, "zookeeper/zk1"), "R", errorcode.KRB_AP_ERR_SKEW, "")
			b, err := e.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			return frame(idError, b)
		}, nil, "KRB_AP_ERR_SKEW"},
		"a subkey of RC4": {func(a *acceptor) []byte {
			key := newKey(t, 23)
			a.subkey = &key
			return a.reply(a.key, a.authenticator.CTime, a.authenticator.Cusec)
		}, nil, "23 (RC4)"},
		"encryption only": {nil, func(a *acceptor) []byte { return a.offer(4) }, "security layer"},
		"changed offer": {nil, func(a *acceptor) []byte {
			token := a.offer(4)
			token[wrapHeader] = noSecurityLayer
			return token
		}, "wrong checksum"},
		"tokens of RC4": {nil, func(*acceptor) []byte { return []byte{0x60, 0x30, 0, 0} }, "RC4"},
		"our own token": {nil, func(a *acceptor) []byte {
			token := a.offer(7)
			token[2] = 0
			return token
		}, "malformed"},
		"sealed": {nil, func(a *acceptor) []byte {
			token := a.offer(7)
			token[2] |= flagSealed
			return token
		}, "malformed"},
		"short": {nil, func(a *acceptor) []byte { return a.offer(7)[:10] }, "malformed"},
		"a long checksum": {nil, func(a *acceptor) []byte {
			token := a.offer(7)
			token[4] = 1
			return token
		}, "malformed"},
		"empty": {nil, func(a *acceptor) []byte { return []byte{} }, "malformed"},
	} {
		x := &exchange{ticket: aTicket(t, id)}
		a := &acceptor{t: t, key: x.ticket.key}
		token, _, err := x.Step(nil)
		if err != nil {
			t.Fatal(err)
		}
		a.read(token)
		if c.reply != nil {
			_, _, err = x.Step(c.reply(a))
		} else if _, _, err = x.Step(a.reply(a.key, a.authenticator.CTime, a.authenticator.Cusec)); err == nil {
			_, _, err = x.Step(c.offer(a))
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want an error with %q", name, err, c.says)
		}
	}
}

// TestRotatedToken: a server may rotate what follows a token's header.
func TestRotatedToken(t *testing.T) {
	key := newKey(t, aesTypes[0])
	token, err := wrap([]byte{1, 2, 3, 4}, key, flagAcceptor, 9, keyusage.GSSAPI_ACCEPTOR_SEAL)
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []int{0, 1, 5, len(token) - wrapHeader, len(token) - wrapHeader + 3} {
		rotated := bytes.Clone(token)
		binary.BigEndian.PutUint16(rotated[6:], uint16(by))
		body, n := token[wrapHeader:], len(token)-wrapHeader
		for i := range body {
			rotated[wrapHeader+(i+by)%n] = body[i]
		}
		got, err := unwrap(rotated, func(byte) types.EncryptionKey { return key }, keyusage.GSSAPI_ACCEPTOR_SEAL)
		if err != nil || !bytes.Equal(got, []byte{1, 2, 3, 4}) {
			t.Errorf("rotated by %d: %x, %v", by, got, err)
		}
	}
}

// FuzzExchange: whatever a server sends, nothing panics, and only a server with the key is accepted.
func FuzzExchange(f *testing.F) {
	shared := aTicket(f, aesTypes[0])
	a := &acceptor{t: f, key: shared.key}
	f.Add(a.reply(a.key, time.Now(), 5), a.offer(1))
	f.Add(frame(idReply, []byte{0x6f, 0x03, 0x30, 0x01, 0xa0}), []byte{5, 4, 1, 0xff, 0, 0, 0, 1})
	f.Add(frame(idError, []byte{0x7e, 0x03}), []byte{})
	f.Add([]byte{0x60, 0x84, 0xff, 0xff, 0xff, 0xff}, []byte{})
	f.Add([]byte(`realm="r"`), []byte{0x60})
	f.Fuzz(func(t *testing.T, reply, offer []byte) {
		x := &exchange{ticket: shared}
		if _, _, err := x.Step(nil); err != nil {
			t.Fatal(err)
		}
		if _, _, err := x.Step(reply); err == nil {
			t.Fatalf("the reply %x was accepted", reply)
		}
		x.steps = 2
		if token, done, err := x.Step(offer); err == nil && (!done || len(token) < wrapHeader+4) {
			t.Fatalf("%x, %v", token, done)
		}
		if id, message, err := unframe(reply); err == nil && !bytes.HasSuffix(reply, message) {
			t.Fatalf("id %x, message %x", id, message)
		}
	})
}

// FuzzReplies: whatever a KDC answers, nothing panics, and no ticket is taken from it.
func FuzzReplies(f *testing.F) {
	f.Add([]byte{0x6b, 0x03, 0x30, 0x01, 0xa0})
	f.Add([]byte{0x7e, 0x03, 0x30, 0x01, 0xa0})
	f.Add([]byte{0x6d, 0x84, 0xff, 0xff, 0xff, 0xff})
	tgt := aTicket(f, aesTypes[0])
	f.Fuzz(func(t *testing.T, b []byte) {
		k := &kdc{cfg: testConfig(t, "")}
		var asReq messages.ASReq
		asReq.ReqBody.CName, asReq.ReqBody.Realm = tgt.client.name, "R"
		if got, err := k.readInitial(tgt.client, noKeys, asReq, b); err == nil {
			t.Fatalf("ticket %+v", got)
		}
		var tgsReq messages.TGSReq
		tgsReq.ReqBody.CName, tgsReq.ReqBody.Realm = tgt.client.name, "R"
		if got, err := k.readFurther(tgt, tgt.client, tgsReq, b); err == nil {
			t.Fatalf("ticket %+v", got)
		}
		_ = k.explain(readRefusal(b), tgt.client)
	})
}
