package rpcfault

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/nfsbox/nfsbox/xdr"
)

// TestFragments reads what appendRecord has cut.
func TestFragments(t *testing.T) {
	rec := bytes.Repeat([]byte("0123456789"), 1000)
	for _, size := range []int{0, 1, 3, 4, 9999, 10000, 10001} {
		b := appendRecord(nil, rec, size, 2, -1)
		got, err := readRecord(bytes.NewReader(b))
		if err != nil || !bytes.Equal(got, rec) {
			t.Errorf("fragments of %d: %d bytes, %v", size, len(got), err)
		}
	}
	for cut := 1; cut < 20; cut++ {
		b := appendRecord(nil, rec[:12], 5, 0, -1)
		if _, err := readRecord(bytes.NewReader(b[:cut])); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut after %d bytes: %v", cut, err)
		}
	}
}

// endless is a stream that never ends.
type endless struct{ b []byte }

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e.b)
	}
	return n, nil
}

func TestRecordBounds(t *testing.T) {
	for name, b := range map[string][]byte{
		"length":            {0xff, 0xff, 0xff, 0xff},
		"empty fragments":   {0, 0, 0, 0},
		"without a last":    {0, 0, 0, 4},
		"growing past that": {0, 0xff, 0xff, 0xf0},
	} {
		if rec, err := readRecord(endless{b}); !errors.Is(err, errRecord) {
			t.Errorf("%s: %d bytes, %v", name, len(rec), err)
		}
	}
}

// FuzzRecord: whatever comes, reading it ends, takes no more memory than has
// come (and a step), and what is read says what was sent.
func FuzzRecord(f *testing.F) {
	f.Add(appendRecord(nil, callRecord(1, 2, []byte("args")), 0, 0, -1))
	f.Add(appendRecord(nil, replyRecord(1, []byte("results!")), 7, 2, -1))
	f.Add(appendRecord(nil, replyRecord(1, nil), 0, 0, 1<<30))
	f.Add(xdr.AppendUint32(nil, 3<<30))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		for range len(b) + 1 {
			rec, err := readRecord(r)
			if err != nil {
				return
			}
			if len(rec) > len(b) || cap(rec) > 4*(len(b)+growStep) {
				t.Fatalf("%d bytes, in %d, of %d", len(rec), cap(rec), len(b))
			}
			again, err := readRecord(bytes.NewReader(appendRecord(nil, rec, len(b)%9, len(b)%3, -1)))
			if err != nil || !bytes.Equal(rec, again) {
				t.Fatalf("%x became %x, %v", rec, again, err)
			}
			h, ok := parseHead(rec)
			if ok && (h.Body < 8 || h.Body > len(rec)) {
				t.Fatalf("the body of %d bytes begins at %d", len(rec), h.Body)
			}
			if !ok && h != (Head{}) {
				t.Fatalf("no head, but %+v", h)
			}
		}
		t.Fatal("reading did not end")
	})
}
