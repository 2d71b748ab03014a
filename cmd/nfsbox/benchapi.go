package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/bench"
)

const (
	// tokenVariable is the environment variable that may hold the token.
	tokenVariable = "NFSBOX_TOKEN"

	// maxSecret bounds a file with a token or certificates, in bytes. A longer
	// one is an error.
	maxSecret = 1 << 20
)

// apiFlags say how to call a file API.
type apiFlags struct {
	Encoding  string `enum:"protobuf,json,plain" default:"protobuf" placeholder:"protobuf|json|plain" help:"How files of the file API go: by calls whose messages are protobuf or JSON, or by plain HTTP; encoding=plain in a URL overrides it (default: protobuf)."`
	HTTP2     bool   `name:"http2" help:"Make all calls of the file API on one connection, instead of one for each caller."`
	Checksum  string `enum:"sha256,blake3,crc32c" default:"sha256" placeholder:"sha256|blake3|crc32c" help:"Checksum by which client and server of the file API check the data (default: sha256)."`
	TokenFile string `type:"path" placeholder:"FILE" help:"Show the token in FILE to the file API; without it, the one in the environment as NFSBOX_TOKEN."`
	CA        string `name:"ca" type:"path" placeholder:"FILE" help:"Trust these authorities (PEM) for https, instead of the host's."`
	Cert      string `type:"path" placeholder:"FILE" help:"Show this certificate (PEM) to the file API, with --key."`
	Key       string `type:"path" placeholder:"FILE" help:"The key of --cert (PEM)."`
}

// set fills in o, if its URL is a file API's.
func (f *apiFlags) set(o *bench.Options) error {
	scheme, _, _ := strings.Cut(strings.ToLower(o.URL), "://")
	if scheme != "http" && scheme != "https" {
		return nil
	}
	o.API = bench.API{JSON: f.Encoding == "json", Plain: f.Encoding == "plain", HTTP2: f.HTTP2, Checksum: f.Checksum}
	var err error
	if o.API.Token, err = f.token(); err != nil {
		return err
	}
	if f.CA == "" && f.Cert == "" && f.Key == "" {
		return nil
	}
	if scheme != "https" {
		return errors.New("--ca, --cert and --key are for https")
	}
	o.API.TLS, err = f.tls()
	return err
}

func (f *apiFlags) token() (string, error) {
	token := os.Getenv(tokenVariable)
	if f.TokenFile != "" {
		b, err := readSecret(f.TokenFile)
		if err != nil {
			return "", fmt.Errorf("--token-file: %w", err)
		}
		if token = strings.TrimSpace(string(b)); token == "" {
			return "", fmt.Errorf("--token-file %s: it is empty", f.TokenFile)
		}
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("the token has characters that none can have: want one line of printable ASCII")
	}
	return token, nil
}

func (f *apiFlags) tls() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if f.CA != "" {
		b, err := readSecret(f.CA)
		if err != nil {
			return nil, fmt.Errorf("--ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("--ca %s: there is no certificate in it", f.CA)
		}
	}
	if (f.Cert == "") != (f.Key == "") {
		return nil, errors.New("--cert and --key go together")
	}
	if f.Cert != "" {
		pair, err := f.pair()
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

func (f *apiFlags) pair() (pair tls.Certificate, err error) {
	cert, err := readSecret(f.Cert)
	if err != nil {
		return pair, fmt.Errorf("--cert: %w", err)
	}
	key, err := readSecret(f.Key)
	if err != nil {
		return pair, fmt.Errorf("--key: %w", err)
	}
	if pair, err = tls.X509KeyPair(cert, key); err != nil {
		err = fmt.Errorf("--cert and --key: %w", err)
	}
	return pair, err
}

func readSecret(name string) (b []byte, err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b, err = io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err == nil && len(b) > maxSecret {
		err = fmt.Errorf("%s has more than %d bytes", name, maxSecret)
	}
	return b, err
}

// tagFlag says which dataset is meant.
type tagFlag struct {
	Tag string `placeholder:"NAME" help:"Part of the name of the files' directory, nfsbox-bench-NAME (default: files)."`
}

// filesFlags are the flags of verbs that work on the files of a dataset.
type filesFlags struct {
	Size  *byteSize `placeholder:"BYTES" help:"Bytes of each file, such as 4096, 50K or 1M (default: 50K)."`
	Files uint64    `placeholder:"N" help:"Files of the dataset (default: COUNT, or 1000). With more operations than files the verb begins again."`
	Seed  uint64    `default:"1" help:"Of the names and contents of files (default: 1)."`
	apiFlags
}

// set fills in o. moves says whether the verb moves bytes; other verbs ignore the size, so that
// the same flags suit all verbs.
func (f *filesFlags) set(o *bench.Options, moves bool) error {
	if f.Size != nil && moves {
		o.Size = f.Size.int()
	}
	o.Files, o.Seed = f.Files, f.Seed
	return f.apiFlags.set(o)
}

// storeFlags say how a file is stored.
type storeFlags struct {
	Sync    bool `default:"true" negatable:"" help:"An operation ends when its file is on the disk; --no-sync (--sync=false) leaves that to the server (default: true)."`
	InPlace bool `help:"Over NFS, write under the file's own name, without a temporary one and RENAME."`
}

func (f *storeFlags) set(o *bench.Options) { o.NoSync, o.InPlace = !f.Sync, f.InPlace }

type benchUploadCmd struct {
	benchFlags
	tagFlag
	filesFlags
	storeFlags
}

func (*benchUploadCmd) Help() string {
	return `Stores files of --size bytes in the directory that URL names, in "nfsbox-bench-NAME" there, and leaves
them for download, exist, delete and clean. Names and contents come from --seed. They are in 64
directories: what is created in one directory takes turns at its lock. The default is 1000 files of
50 KiB; a file that exists is replaced.

An operation is a whole file. Over NFS it is CREATE under a temporary name, as many WRITEs as it
needs, and RENAME; over the file API one Put or, above 128 KiB, one Upload, or with --encoding plain one
PUT, which the server makes atomic in the same way, with a checksum. The file is on the disk when the operation ends: FILE_SYNC, or
UNSTABLE and COMMIT where one WRITE is not enough; sync over the file API. With --no-sync the server
may keep the bytes in memory. --in-place leaves the temporary name and RENAME out. The warm-up
stores files of its own and removes them.

  nfsbox bench upload -c 64 -n 20000 nfs://filer/export/scratch
  nfsbox bench upload -c 500 -n 20000 --no-sync http://127.0.0.1:9999/export`
}

func (c *benchUploadCmd) Run(e *env) error {
	return c.measure(e, "upload", func(o *bench.Options) error {
		o.Tag = c.Tag
		c.storeFlags.set(o)
		return c.filesFlags.set(o, true)
	})
}

// storedFlags are the flags of verbs on the files that upload has stored.
type storedFlags struct {
	benchFlags
	tagFlag
	filesFlags
}

func (f *storedFlags) run(e *env, verb string, moves bool) error {
	return f.measure(e, verb, func(o *bench.Options) error {
		o.Tag = f.Tag
		return f.filesFlags.set(o, moves)
	})
}

type benchDownloadCmd struct{ storedFlags }

func (*benchDownloadCmd) Help() string {
	return `Reads the files that upload has stored with the same flags, one after the other, and compares every
byte with what upload wrote; a difference is a failure ("wrong data"). An operation is a whole file:
over NFS LOOKUP and as many READs as it needs; over the file API one Get or, above 128 KiB, one
Download, with a checksum besides, or with --encoding plain one GET.

  nfsbox bench download -c 64 -n 20000 nfs://filer/export/scratch
  nfsbox bench download --files 20000 --duration 9s nfs://filer/export/scratch`
}

func (c *benchDownloadCmd) Run(e *env) error { return c.run(e, "download", true) }

type benchExistCmd struct{ storedFlags }

func (*benchExistCmd) Help() string {
	return `Asks for the files that upload has stored with the same flags, one after the other: over NFS LOOKUP,
over the file API Exist, or HEAD. One that is not there is a failure ("not there").

  nfsbox bench exist -c 64 --files 20000 -n 200000 nfs://filer/export/scratch`
}

func (c *benchExistCmd) Run(e *env) error { return c.run(e, "exist", false) }

type benchDeleteCmd struct{ storedFlags }

func (*benchDeleteCmd) Help() string {
	return `Removes the files that upload has stored with the same flags, each once, and then their directories
if they are empty: over NFS REMOVE, over the file API Delete, or DELETE. The warm-up only looks for files.

  nfsbox bench delete -c 64 -n 20000 nfs://filer/export/scratch`
}

func (c *benchDeleteCmd) Run(e *env) error { return c.run(e, "delete", false) }

type benchCleanCmd struct {
	benchFlags
	Tag *string `placeholder:"NAME" help:"Remove only nfsbox-bench-NAME (default: every nfsbox-bench- directory)."`
	apiFlags
}

func (*benchCleanCmd) Help() string {
	return `Removes all that upload has left in the directory that URL names, with whatever flags it was started,
also if it was killed, and nothing else: only files with upload's names in directories with upload's
names. Where others are among them they are left, and the directory is named. A directory
nfsbox-bench-NAME without any of upload's in it may be somebody's own: with --tag it is removed if it is
empty. An operation is the removal of one file; the directories follow. There is no warm-up.

  nfsbox bench clean -c 16 nfs://filer/export/scratch`
}

func (c *benchCleanCmd) Run(e *env) error {
	return c.measure(e, "clean", func(o *bench.Options) error {
		if c.Tag != nil {
			if o.Tag = *c.Tag; o.Tag == "" {
				return errors.New("--tag is empty: name one, or leave the flag out to remove all datasets")
			}
		}
		return c.apiFlags.set(o)
	})
}

type benchEchoCmd struct {
	benchFlags
	Size *byteSize `placeholder:"BYTES" help:"Bytes that go there and back over the file API (default: 32). NFS has no such call."`
	Seed uint64    `default:"1" help:"Of these bytes (default: 1)."`
	apiFlags
}

func (*benchEchoCmd) Help() string {
	return `Measures what the protocol alone costs: over the file API Echo, which sends back what it was sent;
over NFS NULL, which carries nothing. The default is 100,000 operations.

  nfsbox bench echo -c 500 http://127.0.0.1:9999/
  nfsbox bench echo -c 500 --encoding json http://127.0.0.1:9999/`
}

func (c *benchEchoCmd) Run(e *env) error {
	return c.measure(e, "echo", func(o *bench.Options) error {
		if c.Size != nil {
			o.Size = c.Size.int()
		}
		o.Seed = c.Seed
		return c.apiFlags.set(o)
	})
}
