package daemon

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/fileapi"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := new(authority)
	a.cert, a.key = a.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// sign makes a certificate of a new key; the first one is its own.
func (a *authority) sign(t *testing.T, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.NotBefore, c.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	parent, by := c, key
	if a.cert != nil {
		parent, by = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, by)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return c, key
}

// pool is the authority as others know it.
func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// writePEM writes a certificate and, if there is one, its key.
func writePEM(t *testing.T, at string, c *x509.Certificate, key *ecdsa.PrivateKey) (certFile, keyFile string) {
	t.Helper()
	certFile, keyFile = at+".crt", at+".key"
	writeSecret(t, certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})))
	if key == nil {
		return certFile, ""
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writeSecret(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	return certFile, keyFile
}

// TestAPITLS lets callers in by token and by certificate over TLS, and goes over to
// another certificate without a restart.
func TestAPITLS(t *testing.T) {
	dir := t.TempDir()
	first, second, clients := newAuthority(t, "first"), newAuthority(t, "second"), newAuthority(t, "clients")
	c := apiConfig(t.TempDir(), t.TempDir())
	a := &c.API
	renew := func(by *authority) {
		t.Helper()
		cert, key := by.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "server"}})
		a.TLSCert, a.TLSKey = writePEM(t, filepath.Join(dir, "server"), cert, key)
	}
	renew(first)
	a.TLSClientCA, _ = writePEM(t, filepath.Join(dir, "clients"), clients.cert, nil)
	a.Loopback, a.Callers = nil, filepath.Join(dir, "callers")
	ids := fmt.Sprintf("%d:%d", os.Geteuid(), os.Getegid())
	writeSecret(t, a.Callers, "one "+ids+" token:"+token('t')+"\ntwo "+ids+" subject:CN=laptop,O=Example\n")
	c.Fill()
	r := runReloader(t, c)

	certificate := func(name string) []tls.Certificate {
		cert, key := clients.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: []string{"Example"}}})
		return []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}
	}
	call := func(o fileapi.Options) connect.Code {
		t.Helper()
		_, err := apiClient(t, apiURL(t, r.log), o).Stat(t.Context(), "/")
		return codeOf(err)
	}
	for _, x := range []struct {
		what string
		o    fileapi.Options
		want connect.Code
	}{
		{"a token", fileapi.Options{Token: token('t'), TLS: &tls.Config{RootCAs: first.pool()}}, 0},
		{"a token over HTTP/2", fileapi.Options{Token: token('t'), TLS: &tls.Config{RootCAs: first.pool()}, HTTP2: true}, 0},
		{"a certificate", fileapi.Options{TLS: &tls.Config{RootCAs: first.pool(), Certificates: certificate("laptop")}}, 0},
		{"somebody else's", fileapi.Options{TLS: &tls.Config{RootCAs: first.pool(), Certificates: certificate("phone")}}, connect.CodeUnauthenticated},
		{"neither", fileapi.Options{TLS: &tls.Config{RootCAs: first.pool()}}, connect.CodeUnauthenticated},
		{"a server that is not believed", fileapi.Options{Token: token('t'), TLS: &tls.Config{RootCAs: second.pool()}}, connect.CodeUnavailable},
	} {
		if got := call(x.o); got != x.want {
			t.Errorf("%s: %v, want %v", x.what, got, x.want)
		}
	}
	renew(second)
	r.reload(&c, nil)
	if got := call(fileapi.Options{Token: token('t'), TLS: &tls.Config{RootCAs: second.pool()}}); got != 0 {
		t.Errorf("by the certificate after a reload: %v", got)
	}
}
