package fileapi

import (
	"bytes"
	"crypto/md5"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"hash"
	"hash/crc32"
	"net/http"
	"strings"

	"connectrpc.com/connect"
)

// verifier takes in the bytes of an upload, and says at the end whether they are right.
type verifier interface {
	Write(p []byte) (int, error)
	// Check returns the checksum, if it has one to tell. It is an error if the bytes are
	// not those that were announced; also, if not empty, is one more announcement.
	Check(also string) (string, error)
}

// digests are the checksums that a PUT announces in its header, of which each is checked:
// Content-MD5, Digest (RFC 3230), Content-Digest and Repr-Digest (RFC 9530).
type digests []digest

type digest struct {
	hash.Hash
	field string
	want  []byte
}

// known are the algorithms of digests. Others are passed over (RFC 9530, section 2), unless
// a field has no other: then nothing would be checked.
var known = map[string]func() hash.Hash{
	"md5": md5.New, "sha-256": sha256.New, "sha-512": sha512.New,
	"crc32c": func() hash.Hash { return crc32.New(crc32.MakeTable(crc32.Castagnoli)) },
}

// maxDigests bounds the digests of one request. More is an error: each costs a pass over
// all bytes.
const maxDigests = 4

// digestsOf reads the fields of a request. Those that it announces for a trailer would come when
// the file has its name: they are refused, since nothing would check them.
func digestsOf(h, trailer http.Header) (digests, error) {
	var d digests
	for _, field := range []string{"Content-MD5", "Digest", "Content-Digest", "Repr-Digest"} {
		if _, late := trailer[http.CanonicalHeaderKey(field)]; late {
			return nil, refuse(connect.CodeInvalidArgument, "%s in a trailer is not checked: send it in the header", field)
		}
		values := h.Values(field)
		before := len(d)
		for part := range strings.SplitSeq(strings.Join(values, ","), ",") {
			algorithm, value := "md5", strings.TrimSpace(part)
			if field != "Content-MD5" {
				algorithm, value, _ = strings.Cut(value, "=")
			}
			if err := d.add(field, strings.ToLower(strings.TrimSpace(algorithm)), value); err != nil {
				return nil, err
			}
		}
		if len(values) > 0 && len(d) == before {
			return nil, refuse(connect.CodeInvalidArgument, "%s has no digest by md5, sha-256, sha-512 or crc32c", field)
		}
	}
	return d, nil
}

func (d *digests) add(field, algorithm, value string) error {
	begin := known[algorithm]
	if begin == nil || value == "" && field == "Content-MD5" {
		return nil
	}
	if strings.HasSuffix(field, "-Digest") { // a structured field: base64 between colons
		quoted, _, _ := strings.Cut(value, ";")
		quoted = strings.TrimSpace(quoted)
		if len(quoted) < 2 || quoted[0] != ':' || quoted[len(quoted)-1] != ':' {
			return refuse(connect.CodeInvalidArgument, "%s: %.40q is not base64 between colons", field, value)
		}
		value = quoted[1 : len(quoted)-1]
	}
	x := digest{begin(), field, nil}
	var err error
	if x.want, err = base64.StdEncoding.DecodeString(value); err != nil || len(x.want) != x.Size() {
		return refuse(connect.CodeInvalidArgument, "%s: %.100q is not the base64 of %d bytes", field, value, x.Size())
	}
	if *d = append(*d, x); len(*d) > maxDigests {
		return refuse(connect.CodeInvalidArgument, "more than %d digests", maxDigests)
	}
	return nil
}

func (d digests) Write(p []byte) (int, error) {
	for i := range d {
		_, _ = d[i].Hash.Write(p) // a hash.Hash never fails to write
	}
	return len(p), nil
}

// Check implements verifier. It tells no checksum.
func (d digests) Check(string) (string, error) {
	for i := range d {
		if !bytes.Equal(d[i].Sum(nil), d[i].want) {
			return "", fmt.Errorf("the bytes that came are not those of %s", d[i].field)
		}
	}
	return "", nil
}
