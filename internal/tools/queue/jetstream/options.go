package jetstream

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

// MaxURLs is how many servers of a broker may be named.
const MaxURLs = 16

// maxCA is the longest file of authorities, in bytes: more than all of a system's.
const maxCA = 4 << 20

// Options say which broker it is, and who we are to it.
type Options struct {
	// URLs are servers of one broker, each nats://HOST[:PORT] or tls://HOST[:PORT], which may have
	// USER:PASSWORD@ or TOKEN@ before the host. With one tls:// among them no connection goes without TLS.
	URLs []string

	// Credentials is a file of a user's JWT and seed, as nsc writes it; "" without.
	Credentials string

	// CA is a file of certificates, PEM, of those who may vouch for the broker, in place of the
	// system's. It demands TLS; "" without.
	CA string

	// Name is what the broker's operator sees of the connection.
	Name string
}

// Check says what is wrong with the options, before anything is connected to. It reads the files.
func (o Options) Check() error {
	_, err := o.nats()
	return err
}

// nats are the options as nats.go has them.
func (o Options) nats() (opts []nats.Option, err error) {
	if len(o.URLs) == 0 || len(o.URLs) > MaxURLs {
		return nil, fmt.Errorf("%d brokers are named, and 1 to %d are possible", len(o.URLs), MaxURLs)
	}
	secure := o.CA != ""
	for _, s := range o.URLs {
		u, err := parse(s)
		if err != nil {
			return nil, err
		}
		secure = secure || u.Scheme == "tls"
	}
	if secure {
		config := &tls.Config{MinVersion: tls.VersionTLS12}
		if o.CA != "" {
			if config.RootCAs, err = authorities(o.CA); err != nil {
				return nil, err
			}
		}
		opts = append(opts, nats.Secure(config))
	}
	if o.Credentials != "" {
		if f, err := os.Open(o.Credentials); err != nil {
			return nil, fmt.Errorf("credentials of the broker: %w", err)
		} else if err := f.Close(); err != nil {
			return nil, err
		}
		opts = append(opts, nats.UserCredentials(o.Credentials))
	}
	return append(opts, nats.Name(o.Name)), nil
}

// parse judges a URL. An error does not repeat it where it may have a password.
func parse(s string) (*url.URL, error) {
	shown := s
	if strings.Contains(s, "@") {
		shown = "(a URL with a password)"
	}
	u, err := url.Parse(s)
	if err != nil || (u.Scheme != "nats" && u.Scheme != "tls") || u.Hostname() == "" ||
		u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%.200q: a broker is nats://HOST[:PORT] or tls://HOST[:PORT]", shown)
	}
	return u, nil
}

// hosts name the broker in errors, without passwords.
func (o Options) hosts() string {
	var hosts []string
	for _, s := range o.URLs {
		if u, err := parse(s); err == nil {
			hosts = append(hosts, u.Host)
		}
	}
	return strings.Join(hosts, ", ")
}

// authorities reads certificates.
func authorities(name string) (*x509.CertPool, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("certificates of the broker: %w", err)
	}
	if info.Size() > maxCA {
		return nil, fmt.Errorf("certificates of the broker: %s has %d bytes: %w", name, info.Size(), queue.ErrTooLong)
	}
	pem, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("certificates of the broker: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("certificates of the broker: %s has none in PEM", name)
	}
	return pool, nil
}
