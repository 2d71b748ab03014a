package oncrpc

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
	"github.com/nfsbox/nfsbox/xdr"
)

// moody is a source that gives a byte or some at a time, and before each time a temporary
// error.
type moody struct {
	p    []byte
	step int
	next bool
}

func (m *moody) Read(p []byte) (int, error) {
	if m.next = !m.next; m.next {
		return 0, os.ErrDeadlineExceeded
	}
	if len(m.p) == 0 {
		return 0, io.EOF
	}
	n := copy(p, m.p[:min(m.step, len(m.p))])
	m.p = m.p[n:]
	return n, nil
}

// TestRecordResumes interrupts the record reader before every read: it loses no
// byte and sees none twice.
func TestRecordResumes(t *testing.T) {
	text := make([]byte, 10000)
	pattern(text, 1)
	stream := join(record(pieces(text, 999)...), record(text), record(nil, nil, text[:5]))
	for _, step := range []int{1, 3, 100, 5000} {
		var pool bufpool.Pool
		r := recordReader{src: &moody{p: stream, step: step}, buf: make([]byte, 256), ahead: 256, max: 1 << 20}
		again := func(f func() error) error {
			for {
				if err := f(); !errors.Is(err, os.ErrDeadlineExceeded) {
					return err
				}
			}
		}
		for i, want := range [][]byte{text, text, text[:5]} {
			if err := again(r.begin); err != nil {
				t.Fatalf("step %d, record %d: %v", step, i, err)
			}
			b := pool.Get(0)
			err := again(func() (err error) {
				b, err = r.rest(&pool, b, nil)
				return err
			})
			if err != nil || !bytes.Equal(b.B, want) {
				t.Fatalf("step %d, record %d: %d bytes, %v", step, i, len(b.B), err)
			}
			b.Release()
		}
		if err := again(r.begin); !errors.Is(err, io.EOF) {
			t.Errorf("step %d, at the end: %v", step, err)
		}
		if n := pool.Outstanding(); n != 0 {
			t.Errorf("step %d: %d buffers lost", step, n)
		}
	}
}

// TestRecordGrowth announces a long record: memory grows with what arrives.
func TestRecordGrowth(t *testing.T) {
	for _, arrived := range []int{0, 100, 5000, 70000} {
		var pool bufpool.Pool
		stream := append(words(lastFragment|64<<20), make([]byte, arrived)...)
		r := recordReader{src: bytes.NewReader(stream), buf: make([]byte, 256), ahead: 256, max: 64 << 20}
		if err := r.begin(); err != nil {
			t.Fatal(err)
		}
		b := pool.Get(0)
		b, err := r.rest(&pool, b, nil)
		if !errors.Is(err, io.ErrUnexpectedEOF) || len(b.B) != arrived {
			t.Errorf("%d bytes, %v", len(b.B), err)
		}
		// The pool rounds up to a power of two.
		if most := 2 * max(arrived*growFactor, smallRecord); cap(b.B) > most {
			t.Errorf("a buffer of %d for %d bytes", cap(b.B), arrived)
		}
		b.Release()
	}
}

// growths counts how often a buffer grows, and stops it at a bound.
type growths struct{ n, most int }

func (g *growths) admit(int) error {
	if g.n++; g.n > g.most {
		return errTest
	}
	return nil
}

// TestRecordGrowsSeldom cuts a record into fragments of a byte, so that no fragment says how
// long it becomes. Beyond the sizes that the pool rounds up to, too, the buffer at least
// doubles: to copy it for each fragment would take time by the square of its length.
func TestRecordGrowsSeldom(t *testing.T) {
	const size, most = 5 << 20, 32 // longer than the largest buffer of the pool
	var pool bufpool.Pool
	piece := record([]byte{7}, nil)[:markBytes+1]
	stream := io.MultiReader(bytes.NewReader(bytes.Repeat(piece, size)), bytes.NewReader(words(lastFragment)))
	r := recordReader{src: stream, buf: make([]byte, 4096), ahead: 4096, max: 8 << 20}
	if err := r.begin(); err != nil {
		t.Fatal(err)
	}
	g := growths{most: most}
	b, err := r.rest(&pool, pool.Get(0), &g)
	if err != nil || len(b.B) != size || cap(b.B) > r.max {
		t.Errorf("%d bytes in a buffer of %d, after it has grown %d times: %v", len(b.B), cap(b.B), g.n, err)
	}
	b.Release()
}

// silence is a source that never gives anything, not even an error.
type silence struct{}

func (silence) Read([]byte) (int, error) { return 0, nil }

func TestRecordSilence(t *testing.T) {
	r := recordReader{src: silence{}, buf: make([]byte, 16), ahead: 16, max: 16}
	if err := r.begin(); !errors.Is(err, errNoProgress) {
		t.Errorf("begin: %v", err)
	}
}

// fragmented are legal ways to cut a record of a megabyte into fragments.
var fragmented = map[string]func(rec []byte) []byte{
	"in one":         func(rec []byte) []byte { return record(rec) },
	"of a byte":      func(rec []byte) []byte { return record(pieces(rec, 1)...) },
	"of up to 50":    func(rec []byte) []byte { return record(uneven(rec, 50)...) },
	"with empty":     func(rec []byte) []byte { return record(strewn(uneven(rec, 50), 3)...) },
	"with 200 empty": func(rec []byte) []byte { return record(strewn(pieces(rec, len(rec)/199), 1)...) },
	"empty in a row": func(rec []byte) []byte { return record(strewn(pieces(rec, len(rec)/2), maxEmptyFragments)...) },
	"empty at the end": func(rec []byte) []byte {
		return record(append([][]byte{rec}, make([][]byte, maxEmptyFragments+1)...)...)
	},
}

// uneven cuts p into fragments of up to n bytes.
func uneven(p []byte, n int) (f [][]byte) {
	for len(p) > 0 {
		k := min(1+len(p)*7%n, len(p))
		f, p = append(f, p[:k]), p[k:]
	}
	return f
}

// TestManyFragments: a megabyte in many pieces is read into the caller's buffer.
func TestManyFragments(t *testing.T) {
	data := make([]byte, 1<<20)
	pattern(data, 3)
	for name, cut := range fragmented {
		t.Run(name, func(t *testing.T) {
			s := newScript(t)
			c := newClient(t, ClientOptions{Dial: s.dial})
			buf := make([]byte, len(data))
			done := begin(func() error {
				r, err := c.Call(t.Context(), proc(procRead), Auth{}, &readArgs{Count: uint32(len(data))}, &readRes{Data: buf})
				r.Release()
				return err
			})
			r := s.accept()
			xid, _, _ := r.call()
			r.send(cut(accepted(xid, join(words(0, 0, uint32(len(data))), data, words(1)))))
			if err := await(t, done); err != nil || !bytes.Equal(buf, data) {
				t.Error(err)
			}
		})
	}
}

// TestServerManyFragments is TestManyFragments with a server.
func TestServerManyFragments(t *testing.T) {
	_, addr := startServer(t, newService(), ServerOptions{})
	data := make([]byte, 1<<20)
	pattern(data, 3)
	for name, cut := range fragmented {
		t.Run(name, func(t *testing.T) {
			r := dialRaw(t, addr)
			r.send(cut(message(1, procEcho, xdr.AppendOpaque(nil, data))))
			if got := r.mustReply(1); !bytes.Equal(got[4:], data) {
				t.Error("not what was sent")
			}
		})
	}
}

// TestForeignProtocols: a server of something else is named by its first bytes. The same
// bytes within a record are none of its.
func TestForeignProtocols(t *testing.T) {
	for text, want := range map[string]string{
		"HTTP/1.1 400 Bad Request\r\n":   "this is HTTP,",
		"SSH-2.0-OpenSSH_9.2p1\r\n":      "this is SSH,",
		"220 mail.example.org ESMTP\r\n": "this is FTP or SMTP,",
		"\x15\x03\x01\x00\x02\x02\x46":   "this is TLS,",
		"\x16\x03\x03\x00\x7a":           "this is TLS,",
		"HTML":                           "record of at least 1213484364 bytes",
		"\x00\x00\x00\x01xHTTP":          "record of at least 1213486161 bytes",
	} {
		r := recordReader{src: strings.NewReader(text), buf: make([]byte, 256), ahead: 256, max: 1 << 20}
		err := r.begin()
		if err == nil {
			err = r.skip()
		}
		if _, ok := errors.AsType[*RecordError](err); !ok || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %s", text, err, want)
		}
	}
}
