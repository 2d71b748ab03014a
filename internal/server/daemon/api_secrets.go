package daemon

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/server/daemon/paths"
	"github.com/nfsbox/nfsbox/internal/server/fileapi"
)

// apiSecrets are how the file API knows its callers, and how they know it. Both are in
// files, and a reload reads them again.
type apiSecrets struct {
	callers *fileapi.Callers // nil: no caller has a token or a certificate
	tls     *tls.Config      // nil: no TLS
}

func readSecrets(a *config.API) (s apiSecrets, err error) {
	if a.Callers != "" {
		if err := paths.Regular(a.Callers); err != nil {
			return s, fmt.Errorf("api: callers: %w", err)
		}
		if s.callers, err = fileapi.ReadCallers(a.Callers); err != nil {
			return s, fmt.Errorf("api: %w", err)
		}
	}
	if a.TLSCert == "" {
		return s, nil
	}
	cert, err := readCertificate(a.TLSCert, a.TLSKey)
	if err != nil {
		return s, fmt.Errorf("api: certificate %s with key %s: %w", a.TLSCert, a.TLSKey, err)
	}
	s.tls = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if a.TLSClientCA == "" {
		return s, nil
	}
	pem, _, err := readPEM(a.TLSClientCA)
	if err != nil {
		return s, fmt.Errorf("api: authorities of clients: %w", err)
	}
	s.tls.ClientCAs, s.tls.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
	if !s.tls.ClientCAs.AppendCertsFromPEM(pem) {
		return s, fmt.Errorf("api: authorities of clients: %s has no certificate (PEM)", a.TLSClientCA)
	}
	return s, nil
}

// readCertificate reads a certificate and its key, which not everybody may know.
func readCertificate(certFile, keyFile string) (tls.Certificate, error) {
	cert, _, err := readPEM(certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, mode, err := readPEM(keyFile)
	switch {
	case err != nil:
		return tls.Certificate{}, err
	case mode.Perm()&0o007 != 0:
		return tls.Certificate{}, fmt.Errorf("everybody on this host may read or change the key (mode %04o); make it 0600, or 0640", mode.Perm())
	}
	return tls.X509KeyPair(cert, key)
}

// readPEM reads a file of at most maxPEM bytes.
func readPEM(path string) (text []byte, mode fs.FileMode, err error) {
	if err := paths.Regular(path); err != nil {
		return nil, 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if text, err = io.ReadAll(io.LimitReader(f, maxPEM+1)); len(text) > maxPEM {
		err = fmt.Errorf("%s is longer than %v", path, config.Size(maxPEM))
	}
	return text, info.Mode(), err
}

// certificates are those in force. Open connections keep those that they began with.
type certificates struct{ now atomic.Pointer[tls.Config] }

func newCertificates(c *tls.Config) *certificates {
	x := new(certificates)
	x.now.Store(c)
	return x
}

func (x *certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return x.now.Load(), nil },
	}
}
