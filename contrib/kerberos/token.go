package kerberos

import (
	"bytes"
	"crypto/hmac"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/types"
)

// The ids of the messages that tokens of a context's establishment hold (RFC 4121, 4.1).
const (
	idRequest = 0x0100
	idReply   = 0x0200
	idError   = 0x0300
)

// oid is the DER encoding of Kerberos' object identifier, 1.2.840.113554.1.2.2.
var oid = []byte{0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 0x01, 0x02, 0x02}

// frame makes a token of a message (RFC 2743, 3.1).
func frame(id uint16, message []byte) []byte {
	body := binary.BigEndian.AppendUint16(bytes.Clone(oid), id)
	body = append(body, message...)
	token := []byte{0x60}
	if n := len(body); n < 0x80 {
		token = append(token, byte(n))
	} else {
		length := bytes.TrimLeft(binary.BigEndian.AppendUint32(nil, uint32(n)), "\x00")
		token = append(append(token, 0x80|byte(len(length))), length...)
	}
	return append(token, body...)
}

var errToken = errors.New("the server's token is malformed")

// unframe returns the message in a token, and its id.
func unframe(token []byte) (id uint16, message []byte, err error) {
	if len(token) < 2 || token[0] != 0x60 {
		return 0, nil, errToken
	}
	length, body := int(token[1]), token[2:]
	if length >= 0x80 {
		n := length - 0x80
		if n < 1 || n > 3 || len(body) < n {
			return 0, nil, errToken
		}
		length = 0
		for _, b := range body[:n] {
			length = length<<8 | int(b)
		}
		body = body[n:]
	}
	body, ok := bytes.CutPrefix(body, oid)
	if !ok || length != len(oid)+len(body) || len(body) < 2 {
		return 0, nil, errToken
	}
	return binary.BigEndian.Uint16(body), body[2:], nil
}

// Wrap tokens (RFC 4121, 4.2.6.2).
const (
	wrapHeader = 16

	flagAcceptor = 1 // the server has made it
	flagSealed   = 2 // it is encrypted
	flagSubkey   = 4 // its key is the one that the server has chosen
)

// wrap makes a token that shows a payload, with a checksum.
func wrap(payload []byte, key types.EncryptionKey, flags byte, sequence uint64, usage uint32) ([]byte, error) {
	header := []byte{5, 4, flags, 0xff, 0, 0, 0, 0}
	header = binary.BigEndian.AppendUint64(header, sequence)
	sum, err := checksum(payload, header, key, usage)
	if err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint16(header[4:], uint16(len(sum)))
	return append(append(header, payload...), sum...), nil
}

// unwrap returns the payload of a server's token. keyOf returns the key for the token's flags.
func unwrap(token []byte, keyOf func(flags byte) types.EncryptionKey, usage uint32) ([]byte, error) {
	if len(token) < 2 {
		return nil, errToken
	}
	if token[0] != 5 || token[1] != 4 {
		return nil, fmt.Errorf("%w: it is none of RFC 4121, perhaps since the key is of type RC4: %s", errToken, adviceAES)
	}
	if len(token) < wrapHeader || token[3] != 0xff || token[2]&flagAcceptor == 0 || token[2]&flagSealed != 0 {
		return nil, errToken
	}
	header, body := bytes.Clone(token[:wrapHeader]), bytes.Clone(token[wrapHeader:])
	extra, rotated := int(binary.BigEndian.Uint16(header[4:])), int(binary.BigEndian.Uint16(header[6:]))
	if extra > len(body) {
		return nil, errToken
	}
	if len(body) > 0 {
		rotated %= len(body)
		body = append(body[rotated:], body[:rotated]...)
	}
	payload, sum := body[:len(body)-extra], body[len(body)-extra:]
	copy(header[4:8], []byte{0, 0, 0, 0})
	want, err := checksum(payload, header, keyOf(header[2]), usage)
	if err != nil {
		return nil, err
	}
	if !hmac.Equal(sum, want) {
		return nil, errors.New("the server's token has a wrong checksum")
	}
	return payload, nil
}

// checksum returns the checksum of a token.
func checksum(payload, header []byte, key types.EncryptionKey, usage uint32) ([]byte, error) {
	t, err := crypto.GetEtype(key.KeyType)
	if err != nil {
		return nil, err
	}
	return t.GetChecksumHash(key.KeyValue, append(bytes.Clone(payload), header...), usage)
}
