package fileapi

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/vfs"
)

const (
	token = "0123456789abcdef0123456789abcdef"
	other = "fedcba9876543210fedcba9876543210"
)

func callersOf(t testing.TB, text string) *Callers {
	t.Helper()
	c, err := ParseCallers(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func hashed(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// TestWho tells requests apart by what they show, and from where.
func TestWho(t *testing.T) {
	callers := callersOf(t, `
# name  ids          proof
plain	1000:1001,7,8  token:`+token+` # a comment
hashed  1002:1002      token-sha256:`+hashed(other)+`
cert    1003:1003      subject:CN=laptop,O=Example Ltd
`)
	local, far := "127.0.0.1:700", "192.0.2.7:700"
	withCert := func(names ...string) *tls.ConnectionState { // several common names, if need be
		subject := (pkix.Name{Organization: []string{"Example Ltd"}}).ToRDNSequence()
		for _, name := range names {
			subject = append(subject, pkix.Name{CommonName: name}.ToRDNSequence()...)
		}
		leaf := &x509.Certificate{}
		leaf.Subject.FillFromRDNSequence(&subject)
		var err error
		if leaf.RawSubject, err = asn1.Marshal(subject); err != nil {
			t.Fatal(err)
		}
		return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}, VerifiedChains: [][]*x509.Certificate{{leaf}}}
	}
	for _, c := range []struct {
		name, remote, host string
		header             map[string]string
		tls                *tls.ConnectionState
		cleartext          bool
		want               string // "": refused
	}{
		{name: "nothing, loopback", remote: local, host: "127.0.0.1:9999", want: "loopback"},
		{name: "nothing, loopback of IPv6", remote: "[::1]:700", host: "[::1]:9999", want: "loopback"},
		{name: "nothing, by name", remote: local, host: "localhost", want: "loopback"},
		{name: "nothing, far", remote: far, host: "127.0.0.1:9999"},
		{name: "nothing, mapped loopback", remote: "[::ffff:127.0.0.1]:700", host: "localhost:1", want: "loopback"},
		{name: "nothing, no address", remote: "@", host: "localhost"},
		{name: "a rebound name", remote: local, host: "evil.example:9999"},
		{name: "a web page", remote: local, host: "127.0.0.1:9999", header: map[string]string{"Origin": "https://evil.example"}},
		{name: "an image of a web page", remote: local, host: "127.0.0.1:9999", header: map[string]string{"Sec-Fetch-Site": "cross-site"}},
		{name: "token", remote: local, header: map[string]string{"Authorization": "Bearer " + token}, want: "plain"},
		{name: "token, another way to write it", remote: local, header: map[string]string{"Authorization": "bearer  " + token + " "}, want: "plain"},
		{name: "hashed token", remote: local, header: map[string]string{"Authorization": "Bearer " + other}, want: "hashed"},
		{name: "the hash for a token", remote: local, header: map[string]string{"Authorization": "Bearer " + hashed(other)}},
		{name: "wrong token, loopback", remote: local, host: "127.0.0.1", header: map[string]string{"Authorization": "Bearer " + token[1:] + "0"}},
		{name: "empty token", remote: local, host: "127.0.0.1", header: map[string]string{"Authorization": "Bearer "}},
		{name: "another scheme", remote: local, host: "127.0.0.1", header: map[string]string{"Authorization": "Basic " + token}},
		{name: "a long token", remote: local, header: map[string]string{"Authorization": "Bearer " + strings.Repeat("a", maxToken+1)}},
		{name: "token in clear", remote: far, header: map[string]string{"Authorization": "Bearer " + token}},
		{name: "token in clear, allowed", remote: far, header: map[string]string{"Authorization": "Bearer " + token}, cleartext: true, want: "plain"},
		{name: "token in TLS", remote: far, header: map[string]string{"Authorization": "Bearer " + token}, tls: &tls.ConnectionState{}, want: "plain"},
		{name: "certificate", remote: far, tls: withCert("laptop"), want: "cert"},
		{name: "certificate of somebody else", remote: far, tls: withCert("laptop2")},
		{name: "certificate of two names", remote: far, tls: withCert("phone", "laptop")},
		{name: "certificate of two names, the other way round", remote: far, tls: withCert("laptop", "phone")},
		{name: "certificate of no name", remote: far, tls: withCert()},
		{name: "certificate of somebody else, loopback", remote: local, host: "127.0.0.1", tls: withCert("laptop2")},
		{name: "certificate and token", remote: far, tls: withCert("laptop"), header: map[string]string{"Authorization": "Bearer " + token}, want: "plain"},
		{name: "certificate and wrong token", remote: far, tls: withCert("laptop"), header: map[string]string{"Authorization": "Bearer x"}},
	} {
		s := &Server{o: Options{Cleartext: c.cleartext}, loopback: loopbackOf(&vfs.Caller{UID: 5})}
		s.SetCallers(callers)
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Host, r.TLS = c.host, c.tls
		for k, v := range c.header {
			r.Header.Set(k, v)
		}
		remote, _ := netip.ParseAddrPort(c.remote)
		who, err := s.authenticate(r, remote)
		switch {
		case c.want == "" && (err == nil || connect.CodeOf(err) != connect.CodeUnauthenticated):
			t.Errorf("%s: %v, %v, want unauthenticated", c.name, who, err)
		case c.want != "" && (err != nil || who.name != c.want):
			t.Errorf("%s: %v, %v, want %s", c.name, who, err, c.want)
		}
	}
	if as := callers.byToken(token).as; !as.Equal(&vfs.Caller{UID: 1000, GID: 1001, Groups: []uint32{7, 8}}) {
		t.Errorf("the token's caller is %+v", as)
	}
	s := &Server{}
	s.SetCallers(nil)
	if _, err := s.authenticate(httptest.NewRequest(http.MethodPost, "/", nil), netip.MustParseAddrPort(local)); err == nil {
		t.Error("a server without callers lets somebody in")
	}
}

// TestCallersFile refuses what could let the wrong ones in.
func TestCallersFile(t *testing.T) {
	for _, text := range []string{
		"name", "name 0:0", "name 0:0 ", "name 0:0 token", "name 0:0 token:" + token[1:], "name 0:0 token:" + strings.Repeat("a", maxToken+1),
		"name 0 token:" + token, "name 0: token:" + token, "name :0 token:" + token, "name 0:x token:" + token, "name -1:0 token:" + token,
		"name 4294967295:0 token:" + token, "name 0:4294967295 token:" + token, "name 0:4294967296 token:" + token,
		"name 0:0 password:" + token, "name 0:0 token-sha256:" + token, "name 0:0 token-sha256:" + strings.Repeat("g", 64), "name 0:0 subject:",
		"a 0:0 token:" + token + "\nb 1:1 token:" + token, "a 0:0 token:" + token + "\nb 1:1 token-sha256:" + hashed(token),
		"a 0:0 subject:CN=x\nb 1:1 subject:CN=x", "a 0:0" + strings.Repeat(",1", maxGroups+1) + " token:" + token,
		"# " + strings.Repeat("x", maxCallersFile),
	} {
		_, err := ParseCallers(strings.NewReader(text))
		if err == nil {
			t.Errorf("%.60q is taken", text)
		} else if strings.Contains(err.Error(), token) {
			t.Errorf("%.60q: the error tells the token: %v", text, err)
		}
	}
	name := filepath.Join(t.TempDir(), "callers")
	for _, c := range []struct {
		mode os.FileMode
		ok   bool
	}{{0o600, true}, {0o400, true}, {0o640, false}, {0o604, false}, {0o620, false}, {0o777, false}} {
		if err := os.WriteFile(name, []byte("name 0:0 token:"+token+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, c.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadCallers(name); (err == nil) != c.ok {
			t.Errorf("mode %v: %v", c.mode, err)
		}
		if err := os.Chmod(name, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ReadCallers(t.TempDir()); err == nil {
		t.Error("a directory is taken")
	}
}

func FuzzParseCallers(f *testing.F) {
	f.Add("# x\nname 0:0,1 token:" + token + " # y\nb 1:1 subject:CN=a b\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCallers(strings.NewReader(text))
		if err == nil && len(c.tokens)+len(c.subjects) > maxCallers {
			t.Fatal("more callers than there may be")
		}
	})
}
