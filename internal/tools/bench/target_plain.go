package bench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// maxRefusal bounds how much of an error's text is kept, in bytes.
const maxRefusal = 200

// plainHTTP makes requests for paths of a file API, without its calls.
type plainHTTP struct {
	base   *url.URL
	client *http.Client
	token  string
	sync   bool
	digest func([]byte) string // the field Digest of an upload
}

func newPlain(p *place, o *Options) (*plainHTTP, error) {
	base, err := url.Parse(p.base)
	if err != nil {
		return nil, err
	}
	digest, ok := map[string]func([]byte) string{"": sha256Digest, pb.SHA256: sha256Digest, pb.CRC32C: crc32cDigest}[p.api.Checksum]
	if !ok {
		return nil, usage("plain HTTP has no checksum %s: sha256 and crc32c are possible", p.api.Checksum)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!p.api.HTTP2)
	protocols.SetHTTP2(p.api.HTTP2)
	protocols.SetUnencryptedHTTP2(p.api.HTTP2)
	t := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: p.api.TLS, Protocols: protocols, DisableCompression: true,
		MaxIdleConnsPerHost: o.Concurrency, IdleConnTimeout: time.Minute, WriteBufferSize: 64 << 10,
	}
	return &plainHTTP{base: base, client: &http.Client{Transport: t}, token: p.api.Token, sync: !o.NoSync, digest: digest}, nil
}

func sha256Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha-256=" + base64.StdEncoding.EncodeToString(sum[:])
}

func crc32cDigest(b []byte) string {
	sum := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
	return "crc32c=" + base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

// do makes a request, and reads into buf what comes back: its length is returned, or one
// more if there is more. A refusal is a refusedError.
func (h *plainHTTP) do(ctx context.Context, method, path string, body, buf []byte) (int, error) {
	q, err := http.NewRequestWithContext(ctx, method, h.base.JoinPath().String(), nil)
	if err != nil {
		return 0, err
	}
	q.URL.Path = path
	if method == http.MethodPut {
		q.Body, q.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		q.Header.Set("Digest", h.digest(body))
		q.Header.Set("Nfsbox-Sync", strconv.FormatBool(h.sync))
	}
	if h.token != "" {
		q.Header.Set("Authorization", "Bearer "+h.token)
	}
	answer, err := h.client.Do(q)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }() // it was read, or its error is on its way
	if answer.StatusCode >= http.StatusMultipleChoices {
		text, err := io.ReadAll(io.LimitReader(answer.Body, maxRefusal))
		if err != nil {
			return 0, err
		}
		return 0, &refusedError{method + " " + path, answer.StatusCode, string(bytes.TrimSpace(text))}
	}
	n, err := io.ReadFull(answer.Body, buf)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) && (answer.ContentLength < 0 || int64(n) == answer.ContentLength) {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	more, err := io.Copy(io.Discard, answer.Body)
	return n + int(min(more, 1)), err
}

// refusedError is an answer that is none of success.
type refusedError struct {
	what   string // method and path
	status int
	text   string
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("%s: %d %s: %s", e.what, e.status, http.StatusText(e.status), e.text)
}

// Unwrap returns the file system's status where the answer has but one meaning.
func (e *refusedError) Unwrap() error {
	switch e.status {
	case http.StatusNotFound:
		return vfs.ErrNoEnt
	case http.StatusInsufficientStorage:
		return vfs.ErrNoSpace
	}
	return nil
}

// plainFolder moves, finds and removes files by HTTP's own methods. Directories are made,
// removed and listed by calls.
type plainFolder struct {
	*apiFolder
	h *plainHTTP
}

func (f *plainFolder) enter(ctx context.Context, name string, create bool) (folder, error) {
	sub, err := f.apiFolder.enter(ctx, name, create)
	if err != nil {
		return nil, err
	}
	return &plainFolder{sub.(*apiFolder), f.h}, nil
}

func (f *plainFolder) upload(ctx context.Context, name string, data []byte) error {
	ctx, end := f.t.begin(ctx, callPUT)
	defer end()
	_, err := f.h.do(ctx, http.MethodPut, f.at(name), data, nil)
	return err
}

func (f *plainFolder) download(ctx context.Context, name string, want, buf []byte) error {
	ctx, end := f.t.begin(ctx, callGET)
	defer end()
	n, err := f.h.do(ctx, http.MethodGet, f.at(name), nil, buf)
	if err != nil {
		return err
	}
	if n != len(want) {
		return errContent
	}
	return same(buf, want)
}

func (f *plainFolder) exist(ctx context.Context, name string) (bool, error) {
	ctx, end := f.t.begin(ctx, callHEAD)
	defer end()
	_, err := f.h.do(ctx, http.MethodHead, f.at(name), nil, nil)
	if errors.Is(err, vfs.ErrNoEnt) {
		return false, nil
	}
	return err == nil, err
}

func (f *plainFolder) remove(ctx context.Context, name string, isDir bool) error {
	if isDir {
		return f.apiFolder.remove(ctx, name, true)
	}
	ctx, end := f.t.begin(ctx, callDELETE)
	defer end()
	_, err := f.h.do(ctx, http.MethodDelete, f.at(name), nil, nil)
	return err
}
