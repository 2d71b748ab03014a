//go:build linux

package linux

import "testing"

func FuzzDirent(f *testing.F) {
	f.Add([]byte("ino.....off.....\x18\x00\x08name\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, n := ParseDirent(b); n != 0 && (n > len(b) || len(d.Name) == 0) {
			t.Errorf("%x is read as %+v, %d", b, d, n)
		}
	})
}
