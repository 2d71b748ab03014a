package layout

import (
	"bytes"
	"errors"
	"os"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// FuzzTrailer wants what is read as a trailer to be one, byte by byte, and all
// else to be an error.
func FuzzTrailer(f *testing.F) {
	good := Trailer{Size: 1000, Sum: object.SumOf([]byte("x")), CRC: 7}
	b := good.Append(nil, "key")
	f.Add(b, "key", int64(1064))
	f.Add(b, "other", int64(1064))
	f.Add(b, "key", int64(1065))
	f.Add(b[:63], "key", int64(1064))
	f.Add([]byte{}, "", int64(0))
	f.Fuzz(func(t *testing.T, b []byte, key string, size int64) {
		got, err := ParseTrailer(b, key, size)
		if err != nil {
			return
		}
		if again := got.Append(nil, key); !bytes.Equal(again, b) || got.Size != size-TrailerSize {
			t.Fatalf("%x is read as %+v, which is %x", b, got, again)
		}
	})
}

// TestTrailer flips every bit of a trailer.
func TestTrailer(t *testing.T) {
	good := Trailer{Size: 1000, Sum: object.SumOf([]byte("x")), CRC: 7}
	b := good.Append(nil, "key")
	if got, err := ParseTrailer(b, "key", 1064); err != nil || got != good || len(b) != TrailerSize {
		t.Fatalf("%+v, %v", got, err)
	}
	for bit := range 8 * len(b) {
		b[bit/8] ^= 1 << (bit % 8)
		if got, err := ParseTrailer(b, "key", 1064); !errors.Is(err, object.ErrCorrupted) {
			t.Errorf("with bit %d flipped: %+v, %v", bit, got, err)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
	for _, c := range []struct {
		b    []byte
		key  string
		size int64
	}{{b[1:], "key", 1064}, {b, "kez", 1064}, {b, "key", 1063}, {b, "key", 1065}, {nil, "key", 0}} {
		if got, err := ParseTrailer(c.b, c.key, c.size); !errors.Is(err, object.ErrCorrupted) {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
	next := append([]byte(nil), b[:60]...)
	next[11] = 2 // a version that is to come, and sound
	crc := CRC(0, next)
	next = append(next, byte(crc>>24), byte(crc>>16), byte(crc>>8), byte(crc))
	if _, err := ParseTrailer(next, "key", 1064); err == nil || errors.Is(err, object.ErrCorrupted) {
		t.Errorf("of version 2: %v", err)
	}
}

func FuzzMarker(f *testing.F) {
	for fanout := range MaxFanout + 2 {
		f.Add(Layout{fanout}.Marker())
	}
	f.Add([]byte("nfsbox object store\nversion 2\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := ParseMarker(b)
		if err != nil {
			if len(err.Error()) > 300 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if l.Fanout < 1 || l.Fanout > MaxFanout || !bytes.Equal(l.Marker(), b) {
			t.Fatalf("%q is read as %+v", b, l)
		}
	})
}

// FuzzSplit wants every key to have a file of its own, in a bucket, whose name is
// no temporary one and leads back to the key.
func FuzzSplit(f *testing.F) {
	for _, key := range []string{"a", "a/b", "sha256/00ff", "a-", "a.b/c_d"} {
		f.Add(key, 2)
	}
	f.Fuzz(func(t *testing.T, key string, fanout int) {
		if object.CheckKey(key) != nil || fanout < 1 || fanout > MaxFanout {
			return
		}
		l := Layout{fanout}
		folder, name := l.Split(key)
		group, ok := l.Bucket(Last(folder))
		if !ok || group != l.Group(name) || Base(folder)+name != key || !IsSegment(name) {
			t.Fatalf("%q is %q in %q", key, name, folder)
		}
		if IsSegment(Last(folder)) {
			t.Fatalf("the bucket %q may be a directory of keys", folder)
		}
	})
}

// FuzzHolder wants what is read as a writer to be one, and its words to fit a line.
func FuzzHolder(f *testing.F) {
	f.Add(Holder{"db1", 17, "nfsbox backup"}.Append(nil))
	f.Add(Holder{"", 0, "\x1b[31m\n"}.Append(nil))
	f.Add([]byte("host a\npid -1\ncommand b\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, ok := ParseHolder(b)
		if !ok {
			return
		}
		if !bytes.Equal(h.Append(nil), b) {
			t.Fatalf("%q is read as %+v", b, h)
		}
		for _, c := range []byte(h.String()) {
			if c < ' ' || c > '~' {
				t.Fatalf("in words: %q", h.String())
			}
		}
	})
}

// TestSelf: this process says who it is in a form that is read again.
func TestSelf(t *testing.T) {
	h := Self()
	got, ok := ParseHolder(h.Append(nil))
	if !ok || got.PID != os.Getpid() || got.Command == "" || got.Host == "" {
		t.Errorf("%+v is read as %+v, %v", h, got, ok)
	}
}
