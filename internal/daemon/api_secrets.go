package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/fileapi"
)

// apiSecrets is what the file API knows callers by, and what it is known by. Both
// are in files, and change by a reload.
type apiSecrets struct {
	callers *fileapi.Callers // nil: nobody has a token or a certificate
	tls     *tls.Config      // nil: no TLS
}

// read reads the files that [api] names.
func (a *API) read() (s apiSecrets, err error) {
	if a.Callers != "" {
		if s.callers, err = fileapi.ReadCallers(a.Callers); err != nil {
			return s, fmt.Errorf("api: %w", err)
		}
	}
	if a.TLSCert == "" {
		return s, nil
	}
	cert, err := tls.LoadX509KeyPair(a.TLSCert, a.TLSKey)
	if err != nil {
		return s, fmt.Errorf("api: certificate %s with key %s: %w", a.TLSCert, a.TLSKey, err)
	}
	s.tls = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if a.TLSClientCA == "" {
		return s, nil
	}
	pem, err := os.ReadFile(a.TLSClientCA)
	if err != nil {
		return s, fmt.Errorf("api: authorities of clients: %w", err)
	}
	s.tls.ClientCAs, s.tls.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
	if !s.tls.ClientCAs.AppendCertsFromPEM(pem) {
		return s, fmt.Errorf("api: authorities of clients: %s has no certificate (PEM)", a.TLSClientCA)
	}
	return s, nil
}

// certificates are those in force. Connections that are open keep what they began
// with.
type certificates struct{ now atomic.Pointer[tls.Config] }

func newCertificates(c *tls.Config) *certificates {
	x := new(certificates)
	x.now.Store(c)
	return x
}

// config is one that asks for what is in force, for each connection.
func (x *certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return x.now.Load(), nil },
	}
}

// renew goes over to what was read.
func (x *api) renew(s apiSecrets) {
	if x.srv == nil {
		return
	}
	x.srv.SetCallers(s.callers)
	if x.tls != nil {
		x.tls.now.Store(s.tls)
	}
}
