package fileapi

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/nfsbox/nfsbox/vfs"
)

// The bounds of a file of callers. A file beyond them is an error, and admits no caller.
const (
	maxCallersFile = 1 << 20
	maxCallers     = 1024
	maxGroups      = 1024 // of one caller
	// minToken is the length of the shortest token, in bytes: 128 bits in
	// hexadecimal digits. What is shorter can be guessed.
	minToken = 32
	maxToken = 1024 // also of what a request shows; longer is no token
)

// Callers are the users that may use the API, and what they show to prove it. They are not
// changed once they are made.
//
// The file that they are read from has a line for each, of three fields with spaces
// or tabs between them; empty lines and what follows a "#" that begins a field say
// nothing:
//
//	# name   uid:gid[,group...]  proof
//	backup   1000:1000,27        token:5f0c9f1be3a7...
//	ci       1001:1001           token-sha256:9f86d081884c...
//	laptop   1002:1002           subject:CN=laptop,O=Example
//
// A token is at least 32 printable characters; as token-sha256 the file holds its
// SHA-256 alone, in hexadecimal digits, and a reader of the file cannot use it. A subject is
// that of a client certificate which the server's certificate authorities have
// signed, as RFC 2253 writes it and "openssl x509 -subject -nameopt RFC2253" shows
// it; it is the rest of the line, spaces and all.
//
// The name appears in logs and counts; calls are counted by it, so two proofs of one
// name share its bounds.
type Callers struct {
	tokens   []tokenOf
	subjects map[string]*identity
}

type tokenOf struct {
	sum [sha256.Size]byte
	who *identity
}

// identity is a caller of the API.
type identity struct {
	name string
	as   vfs.Caller // without Client
}

// ReadCallers reads the callers from a file, which holds secrets: it must be a
// regular file that belongs to this user or root, and that nobody else may read or
// change (mode 0600 or less).
func ReadCallers(name string) (*Callers, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("callers: %w", err)
	}
	// It was read, or its error is on its way.
	defer func() { _ = f.Close() }()
	if err := checkSecret(f); err != nil {
		return nil, fmt.Errorf("callers: %s: %w", name, err)
	}
	c, err := ParseCallers(f)
	if err != nil {
		return nil, fmt.Errorf("callers: %s: %w", name, err)
	}
	return c, nil
}

// ParseCallers reads the callers from the contents of such a file.
func ParseCallers(r io.Reader) (*Callers, error) {
	c := &Callers{subjects: make(map[string]*identity)}
	lines := bufio.NewScanner(io.LimitReader(r, maxCallersFile+1))
	n, size := 0, 0
	for lines.Scan() {
		n++
		if size += len(lines.Bytes()) + 1; size > maxCallersFile {
			return nil, fmt.Errorf("more than %d bytes", maxCallersFile)
		}
		if err := c.add(lines.Text()); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if len(c.tokens)+len(c.subjects) > maxCallers {
			return nil, fmt.Errorf("more than %d callers", maxCallers)
		}
	}
	return c, lines.Err()
}

// add takes in a line. Its errors do not quote the proof.
func (c *Callers) add(line string) error {
	line = strings.TrimSpace(line)
	if line == "" || strings.HasPrefix(line, "#") {
		return nil
	}
	name, rest, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	ids, proof, _ := strings.Cut(strings.TrimLeft(rest, " "), " ")
	proof = strings.TrimLeft(proof, " ")
	kind, value, ok := strings.Cut(proof, ":")
	if !ok {
		return errors.New(`want a name, "uid:gid" and "token:", "token-sha256:" or "subject:" with what follows it`)
	}
	as, err := ParseIDs(ids)
	if err != nil {
		// Nothing of it is quoted: it may be a token in the wrong place, and this is logged.
		return errors.New("the second word is no user: write it as 1000:1000, or 1000:1000,27,44")
	}
	who := &identity{name: name, as: as}
	if kind != "subject" {
		value, _, _ = strings.Cut(value, " #")
		return c.addToken(who, kind, strings.TrimRight(value, " "))
	}
	if value == "" || c.subjects[value] != nil {
		return errors.New("the subject is empty, or another caller's as well")
	}
	c.subjects[value] = who
	return nil
}

func (c *Callers) addToken(who *identity, kind, value string) error {
	t := tokenOf{who: who}
	switch kind {
	case "token":
		if len(value) < minToken || len(value) > maxToken || strings.ContainsFunc(value, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return fmt.Errorf("a token has %d to %d printable characters without spaces", minToken, maxToken)
		}
		t.sum = sha256.Sum256([]byte(value))
	case "token-sha256":
		sum, err := hex.DecodeString(value)
		if err != nil || len(sum) != len(t.sum) {
			return errors.New("a token's SHA-256 has 64 hexadecimal digits")
		}
		copy(t.sum[:], sum)
	default:
		return errors.New("no kind of proof: want token, token-sha256 or subject")
	}
	for i := range c.tokens {
		if c.tokens[i].sum == t.sum {
			return fmt.Errorf("the token is also that of %s", c.tokens[i].who.name)
		}
	}
	c.tokens = append(c.tokens, t)
	return nil
}

// ParseIDs reads a caller's numbers, "uid:gid[,group...]", of which at most 1024 are
// further groups. None is 1<<32-1, which stands for no user.
func ParseIDs(s string) (vfs.Caller, error) {
	uid, gids, ok := strings.Cut(s, ":")
	ids := append([]string{uid}, strings.SplitN(gids, ",", 2+maxGroups)...)
	if !ok || len(ids) > 2+maxGroups {
		return vfs.Caller{}, fmt.Errorf("%.40q is no user; write it as 1000:1000, or 1000:1000,27,44 with at most %d further groups", s, maxGroups)
	}
	n := make([]uint32, len(ids))
	for i := range ids {
		v, err := strconv.ParseUint(ids[i], 10, 32)
		if err != nil || v == 1<<32-1 { // which stands for nobody at all, and in setfsuid(2) for no change
			return vfs.Caller{}, fmt.Errorf("%.40q: %.20q is not the number of a user or group", s, ids[i])
		}
		n[i] = uint32(v)
	}
	return vfs.Caller{UID: n[0], GID: n[1], Groups: n[2:]}, nil
}

// bySubject finds whose certificate it is, by all of its subject as it was signed. A
// pkix.Name keeps one common name of several, and so makes different subjects equal.
func (c *Callers) bySubject(cert *x509.Certificate) *identity {
	var subject pkix.RDNSequence
	if rest, err := asn1.Unmarshal(cert.RawSubject, &subject); err != nil || len(rest) != 0 || len(subject) == 0 {
		return nil
	}
	return c.subjects[subject.String()]
}

// byToken finds the identity of a token. Its time depends on the token's length alone: it
// compares the checksums of all tokens, of which a near miss tells nothing.
func (c *Callers) byToken(token string) *identity {
	if len(token) > maxToken {
		return nil
	}
	sum := sha256.Sum256([]byte(token))
	var who *identity
	for i := range c.tokens {
		if subtle.ConstantTimeCompare(sum[:], c.tokens[i].sum[:]) == 1 {
			who = c.tokens[i].who
		}
	}
	return who
}
