package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

// TestSecretsRefused reads no file of [api] that is too long or open to everybody.
func TestSecretsRefused(t *testing.T) {
	dir := t.TempDir()
	by := newAuthority(t, "authority")
	cert, key := by.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "server"}})
	certFile, keyFile := writePEM(t, filepath.Join(dir, "server"), cert, key)
	long, open := filepath.Join(dir, "long"), filepath.Join(dir, "open")
	writeSecret(t, long, strings.Repeat("\n", maxPEM+1))
	text, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	writeSecret(t, open, string(text))
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readSecrets(&config.API{TLSCert: certFile, TLSKey: keyFile}); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		what string
		api  config.API
		want string
	}{
		{"a long certificate", config.API{TLSCert: long, TLSKey: keyFile}, "longer than 1MiB"},
		{"a long key", config.API{TLSCert: certFile, TLSKey: long}, "longer than 1MiB"},
		{"a key for everybody", config.API{TLSCert: certFile, TLSKey: open}, "(mode 0644)"},
		{"many authorities", config.API{TLSCert: certFile, TLSKey: keyFile, TLSClientCA: long}, "longer than 1MiB"},
		{"no authority", config.API{TLSCert: certFile, TLSKey: keyFile, TLSClientCA: keyFile}, "no certificate"},
		{"a directory for callers", config.API{Callers: dir}, "no regular file"},
		{"a directory for a certificate", config.API{TLSCert: dir, TLSKey: keyFile}, "no regular file"},
	} {
		if _, err := readSecrets(&x.api); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %s", x.what, err, x.want)
		}
	}
}

// TestSessionsEndWithAuthorities does not take up a session again whose authority a
// reload has taken out.
func TestSessionsEndWithAuthorities(t *testing.T) {
	first, second, server := newAuthority(t, "first"), newAuthority(t, "second"), newAuthority(t, "server")
	dir := t.TempDir()
	a := config.API{}
	cert, key := server.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "server"}})
	a.TLSCert, a.TLSKey = writePEM(t, filepath.Join(dir, "server"), cert, key)
	read := func(by *authority) *tls.Config {
		a.TLSClientCA, _ = writePEM(t, filepath.Join(dir, "clients"), by.cert, nil)
		s, err := readSecrets(&a)
		if err != nil {
			t.Fatal(err)
		}
		return s.tls
	}
	x := newCertificates(read(first))
	mine, mineKey := first.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "laptop"}})
	client := &tls.Config{
		RootCAs: server.pool(), ServerName: "127.0.0.1", ClientSessionCache: tls.NewLRUClientSessionCache(1),
		Certificates: []tls.Certificate{{Certificate: [][]byte{mine.Raw}, PrivateKey: mineKey}},
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", x.config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	// shake says whether the server has believed the client's certificate.
	shake := func() bool {
		believed := make(chan bool, 1)
		go func() {
			conn, err := l.Accept()
			if err != nil {
				believed <- false
				return
			}
			_, err = conn.Write([]byte("x"))
			server, ok := conn.(*tls.Conn)
			believed <- errors.Join(err, conn.Close()) == nil && ok && len(server.ConnectionState().VerifiedChains) > 0
		}()
		conn, err := tls.Dial("tcp", l.Addr().String(), client)
		if err == nil {
			_, err = conn.Read(make([]byte, 1)) // and with it the ticket
			err = errors.Join(err, conn.Close())
		}
		return <-believed && err == nil
	}
	for range 2 { // the second one has a session to take up
		if !shake() {
			t.Fatal("a certificate of the authority is not believed")
		}
	}
	x.now.Store(read(second))
	if shake() {
		t.Error("a session is taken up whose authority is believed no longer")
	}
}
