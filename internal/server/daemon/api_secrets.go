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

// readSecrets reads all of them. Its error joins a config.KeyError for each that will not do.
func readSecrets(a *config.API) (s apiSecrets, err error) {
	if a.Callers != "" {
		if s.callers, err = readCallers(a.Callers); err != nil {
			err = &config.KeyError{Key: "api.callers", Err: err}
		}
	}
	if a.TLSCert != "" && a.TLSKey != "" { // that one is missing is config's to say
		var e error
		s.tls, e = readTLS(a)
		err = errors.Join(err, e)
	}
	return s, err
}

func readCallers(path string) (*fileapi.Callers, error) {
	if err := paths.Regular(path); err != nil {
		return nil, err
	}
	return fileapi.ReadCallers(path)
}

func readTLS(a *config.API) (*tls.Config, error) {
	cert, err := readCertificate(a.TLSCert, a.TLSKey)
	if err != nil {
		return nil, &config.KeyError{Key: "api.tls-cert", Err: fmt.Errorf("certificate %s with key %s: %w", a.TLSCert, a.TLSKey, err)}
	}
	t := &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	if a.TLSClientCA == "" {
		return t, nil
	}
	pem, _, err := readPEM(a.TLSClientCA)
	if err != nil {
		return nil, &config.KeyError{Key: "api.tls-client-ca", Err: err}
	}
	t.ClientCAs, t.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
	if !t.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, &config.KeyError{Key: "api.tls-client-ca", Err: fmt.Errorf("%s has no certificate (PEM)", a.TLSClientCA)}
	}
	return t, nil
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
