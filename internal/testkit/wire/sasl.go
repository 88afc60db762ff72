package wire

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"
)

// The server's half of DIGEST-MD5 (RFC 2831), as ZooKeeper has it. The client has code of its own for its half.

// realm and nonce are in each challenge: no test replays an exchange.
const (
	realm = "zk-sasl-md5"
	nonce = "n"
)

// refused is the protocol's error code of an authentication that has failed.
const refused = -115

// authenticate answers a token of the client: the first one, which is empty, with a challenge, and the response with the proof that the
// server knows the password, too. A wrong response is refused, and the connection ends.
func (c *Conn) authenticate(xid int32, token string) (goOn bool) {
	if token == "" {
		c.send(text(header(xid, 0, 0), fmt.Sprintf("realm=%q,nonce=%q,qop=\"auth\",charset=utf-8,algorithm=md5-sess", realm, nonce)))
		return true
	}
	if c.net.user == "" || c.net.at(c.host, SASLHello) {
		c.idle()
		return false
	}
	directive := func(name string) string {
		m := regexp.MustCompile(`(?:^|,)` + name + `="?([^",]*)"?`).FindStringSubmatch(token)
		if m == nil {
			return ""
		}
		return m[1]
	}
	proof := func(method string) string {
		secret := md5.Sum([]byte(c.net.user + ":" + realm + ":" + c.net.password))
		session := hashed(string(secret[:]) + ":" + nonce + ":" + directive("cnonce"))
		return hashed(session + ":" + nonce + ":00000001:" + directive("cnonce") + ":auth:" + hashed(method+":"+directive("digest-uri")))
	}
	if directive("username") != c.net.user || directive("response") != proof("AUTHENTICATE") {
		c.send(binary.BigEndian.AppendUint32(header(xid, 0, refused), ^uint32(0)))
		return false
	}
	c.send(text(header(xid, 0, 0), "rspauth="+proof("")))
	return true
}

// hashed returns the MD5 of a text, in hexadecimal digits.
func hashed(s string) string {
	sum := md5.Sum([]byte(s))
	return hex.EncodeToString(sum[:])
}
