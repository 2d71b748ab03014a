package dir

import (
	"bytes"
	"errors"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

// FuzzTrailer wants what is read as a trailer to be one, byte by byte, and all
// else to be an error.
func FuzzTrailer(f *testing.F) {
	good := trailer{size: 1000, sum: object.SumOf([]byte("x")), crc: 7}
	b := good.append(nil, "key")
	f.Add(b, "key", int64(1064))
	f.Add(b, "other", int64(1064))
	f.Add(b, "key", int64(1065))
	f.Add(b[:63], "key", int64(1064))
	f.Add([]byte{}, "", int64(0))
	f.Fuzz(func(t *testing.T, b []byte, key string, size int64) {
		got, err := parseTrailer(b, key, size)
		if err != nil {
			return
		}
		if again := got.append(nil, key); !bytes.Equal(again, b) || got.size != size-trailerSize {
			t.Fatalf("%x is read as %+v, which is %x", b, got, again)
		}
	})
}

// TestTrailer flips every bit of a trailer.
func TestTrailer(t *testing.T) {
	good := trailer{size: 1000, sum: object.SumOf([]byte("x")), crc: 7}
	b := good.append(nil, "key")
	if got, err := parseTrailer(b, "key", 1064); err != nil || got != good || len(b) != trailerSize {
		t.Fatalf("%+v, %v", got, err)
	}
	for bit := range 8 * len(b) {
		b[bit/8] ^= 1 << (bit % 8)
		if got, err := parseTrailer(b, "key", 1064); !errors.Is(err, object.ErrCorrupted) {
			t.Errorf("with bit %d flipped: %+v, %v", bit, got, err)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
	for _, c := range []struct {
		b    []byte
		key  string
		size int64
	}{{b[1:], "key", 1064}, {b, "kez", 1064}, {b, "key", 1063}, {b, "key", 1065}, {nil, "key", 0}} {
		if got, err := parseTrailer(c.b, c.key, c.size); !errors.Is(err, object.ErrCorrupted) {
			t.Errorf("%+v: %+v, %v", c, got, err)
		}
	}
	next := append([]byte(nil), b[:60]...)
	next[11] = 2 // a version that is to come, and sound
	crc := castagnoli(0, next)
	next = append(next, byte(crc>>24), byte(crc>>16), byte(crc>>8), byte(crc))
	if _, err := parseTrailer(next, "key", 1064); err == nil || errors.Is(err, object.ErrCorrupted) {
		t.Errorf("of version 2: %v", err)
	}
}

func FuzzMarker(f *testing.F) {
	for fanout := range MaxFanout + 2 {
		f.Add(layout{fanout}.marker())
	}
	f.Add([]byte("nfsbox object store\nversion 2\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := parseMarker(b)
		if err != nil {
			if len(err.Error()) > 300 {
				t.Fatalf("an error of %d bytes", len(err.Error()))
			}
			return
		}
		if l.fanout < 1 || l.fanout > MaxFanout || !bytes.Equal(l.marker(), b) {
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
		l := layout{fanout}
		folder, name := l.split(key)
		group, ok := l.isBucket(lastOf(folder))
		if !ok || group != l.group(name) || base(folder)+name != key || !isSegment(name) {
			t.Fatalf("%q is %q in %q", key, name, folder)
		}
		if isSegment(lastOf(folder)) {
			t.Fatalf("the bucket %q may be a directory of keys", folder)
		}
	})
}
