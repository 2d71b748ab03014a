package jetstream

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/nfsbox/nfsbox/internal/testkit/natsd"
	"github.com/nfsbox/nfsbox/internal/tools/queue"
)

var testJob = queue.Job{Name: "copy.1", Run: strings.Repeat("0a", 16), Spec: []byte("spec")}

// works wants a broker to be one.
func works(t *testing.T, o Options) *Broker {
	t.Helper()
	b, err := Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := b.Open(t.Context(), testJob); err != nil {
		t.Error(err)
	}
	return b
}

// refused wants an error of the broker that says all of words, and nothing of a password.
func refused(t *testing.T, err error, words ...string) {
	t.Helper()
	if !errors.Is(err, queue.ErrBroker) {
		t.Errorf("%v is not ErrBroker", err)
	}
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%v does not say %q", err, w)
		}
	}
	if err != nil && strings.Contains(err.Error(), "secret") {
		t.Errorf("%v has a password", err)
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = Connect(t.Context(), Options{URLs: []string{"nats://me:secret@" + addr}})
	refused(t, err, "cannot be reached", addr)
}

// TestSilent wants a connection to end with its context where nobody answers.
func TestSilent(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Connect(ctx, Options{URLs: []string{"nats://" + l.Addr().String()}}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestPassword(t *testing.T) {
	s := natsd.Start(t, natsd.Options{Config: "authorization { user: me, password: secret }"})
	works(t, Options{URLs: []string{"nats://me:secret@" + s.Addr}})
	_, err := Connect(t.Context(), Options{URLs: []string{"nats://me:secrets@" + s.Addr}})
	refused(t, err, "refuses", s.Addr)
}

func TestNoJetStream(t *testing.T) {
	s := natsd.Start(t, natsd.Options{Plain: true})
	_, err := Connect(t.Context(), Options{URLs: []string{s.URL()}})
	refused(t, err, "JetStream", "-js")
}

func TestSmallPayload(t *testing.T) {
	s := natsd.Start(t, natsd.Options{Config: "max_payload: 100000"})
	_, err := Connect(t.Context(), Options{URLs: []string{s.URL()}})
	refused(t, err, "100000", "max_payload")
}

// TestPayloadShrinks has the bound set while we are connected, and wants a clear error.
func TestPayloadShrinks(t *testing.T) {
	s := natsd.Start(t, natsd.Options{})
	b := works(t, Options{URLs: []string{s.URL()}})
	d, err := b.Open(t.Context(), testJob)
	if err != nil {
		t.Fatal(err)
	}
	s.Forget(t)
	s.Configure(t, "max_payload: 100000")
	s.Restart(t)
	if _, err := b.Open(t.Context(), testJob); err != nil {
		t.Fatal(err)
	}
	err = d.Deal(t.Context(), queue.Item{ID: 1, Body: make([]byte, 200_000)})
	if !errors.Is(err, queue.ErrTooLong) || !strings.Contains(err.Error(), "max_payload") {
		t.Error(err)
	}
	if err := d.Deal(t.Context(), queue.Item{ID: 1, Body: make([]byte, 50_000)}); err != nil {
		t.Error(err)
	}
}

// TestRights wants what a user may not do to be told, not to be waited for.
func TestRights(t *testing.T) {
	s := natsd.Start(t, natsd.Options{Config: `authorization { users: [ { user: me, password: secret,
		permissions: { publish: ["$JS.API.INFO"], subscribe: ["_INBOX.>"] } } ] }`})
	b, err := Connect(t.Context(), Options{URLs: []string{"nats://me:secret@" + s.Addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	_, err = b.Jobs(t.Context())
	refused(t, err, "refuses", "$JS.API")
	d := &dealer{b, testJob}
	err = d.Answer(t.Context(), func(context.Context, []byte) []byte { return nil })
	refused(t, err, "refuses", "nfsbox.copy=1")
}

// TestRefusedLater wants waiting to end where a broker comes back that does not let us in.
func TestRefusedLater(t *testing.T) {
	s := natsd.Start(t, natsd.Options{})
	b := works(t, Options{URLs: []string{s.URL()}})
	w, err := b.Join(t.Context(), testJob)
	if err != nil {
		t.Fatal(err)
	}
	s.Kill()
	s.Configure(t, "authorization { user: me, password: secret }")
	s.Restart(t)
	_, err = w.Take(t.Context())
	refused(t, err, "closed")
}

func TestOptions(t *testing.T) {
	for _, u := range []string{"", "nats://", "http://host", "host:4222", "nats://host/path", "nats://host?a=b", "nats://host#f",
		"nats://me:secret@", "nats://me:secret@host:port", "ws://host", "\x00"} {
		err := Options{URLs: []string{u}}.Check()
		if err == nil || !strings.Contains(err.Error(), "nats://HOST") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", u, err)
		}
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	good := []string{"nats://host", "tls://me:pass@host:1"}
	for _, o := range []Options{
		{},
		{URLs: make([]string, MaxURLs+1)},
		{URLs: good, Credentials: empty + "nowhere"},
		{URLs: good, CA: empty + "nowhere"},
		{URLs: good, CA: empty},
	} {
		if err := o.Check(); err == nil {
			t.Errorf("%+v is right", o)
		}
	}
	if err := (Options{URLs: good}).Check(); err != nil {
		t.Error(err)
	}
}

// certificate makes a certificate for loopback that vouches for itself, and returns its file and its key's.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, priv.Public(), priv)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert"), filepath.Join(dir, "key")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestTLS(t *testing.T) {
	cert, key := certificate(t)
	other, _ := certificate(t)
	s := natsd.Start(t, natsd.Options{Config: fmt.Sprintf("tls { cert_file: %q, key_file: %q }", cert, key)})
	plain := natsd.Start(t, natsd.Options{})
	works(t, Options{URLs: []string{"tls://" + s.Addr}, CA: cert})
	works(t, Options{URLs: []string{"nats://" + s.Addr}, CA: cert})
	for _, o := range []Options{
		{URLs: []string{"tls://" + s.Addr}},
		{URLs: []string{"nats://" + s.Addr}},
		{URLs: []string{"tls://" + s.Addr}, CA: other},
	} {
		_, err := Connect(t.Context(), o)
		refused(t, err, "not trusted")
	}
	for _, o := range []Options{{URLs: []string{"tls://" + plain.Addr}}, {URLs: []string{"nats://" + plain.Addr}, CA: cert}} {
		_, err := Connect(t.Context(), o)
		refused(t, err, "refuses", "secure")
	}
}

// account is a key pair, and the claims that it is sworn to.
type account struct{ nkeys.KeyPair }

func newAccount(t *testing.T, pair nkeys.KeyPair, err error) account {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return account{pair}
}

func (a account) id(t *testing.T) string {
	t.Helper()
	id, err := a.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// swear is a JWT of NATS by a about of.
func (a account) swear(t *testing.T, of account, claims string) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"jti": "1", "iat": time.Now().Unix(), "iss": a.id(t), "sub": of.id(t), "name": "test", "nats": json.RawMessage(claims)})
	if err != nil {
		t.Fatal(err)
	}
	enc := base64.RawURLEncoding.EncodeToString
	text := enc([]byte(`{"typ":"JWT","alg":"ed25519-nkey"}`)) + "." + enc(body)
	sig, err := a.Sign([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return text + "." + enc(sig)
}

func TestCredentials(t *testing.T) {
	pair := func(create func() (nkeys.KeyPair, error)) account {
		p, err := create()
		return newAccount(t, p, err)
	}
	op, sys, acc, user, stranger := pair(nkeys.CreateOperator), pair(nkeys.CreateAccount), pair(nkeys.CreateAccount), pair(nkeys.CreateUser), pair(nkeys.CreateUser)
	const limits = `"subs":-1,"data":-1,"payload":-1`
	const wide = `{"type":"account","version":2,"limits":{` + limits + `,"imports":-1,"exports":-1,"wildcards":true,"conn":-1,"leaf":-1%s}}`
	s := natsd.Start(t, natsd.Options{Config: fmt.Sprintf("operator: %s\nsystem_account: %s\nresolver: MEMORY\nresolver_preload: { %s: %s, %s: %s }\n",
		op.swear(t, op, `{"type":"operator","version":2}`), sys.id(t),
		sys.id(t), op.swear(t, sys, fmt.Sprintf(wide, "")),
		acc.id(t), op.swear(t, acc, fmt.Sprintf(wide, `,"mem_storage":-1,"disk_storage":-1,"streams":-1,"consumer":-1`)))})
	file := func(by, of account) string {
		seed, err := of.Seed()
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(t.TempDir(), "creds")
		text := "-----BEGIN NATS USER JWT-----\n" + by.swear(t, of, `{"type":"user","version":2,`+limits+`}`) +
			"\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n" + string(seed) + "\n------END USER NKEY SEED------\n"
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	works(t, Options{URLs: []string{s.URL()}, Credentials: file(acc, user)})
	for _, o := range []Options{{URLs: []string{s.URL()}}, {URLs: []string{s.URL()}, Credentials: file(sys, stranger)}, {URLs: []string{s.URL()}, Credentials: file(op, stranger)}} {
		b, err := Connect(t.Context(), o)
		if err == nil {
			_ = b.Close()
		}
		refused(t, err)
	}
}
