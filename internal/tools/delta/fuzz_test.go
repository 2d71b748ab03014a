package delta

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// FuzzJoin joins directories as the input has them, beside a join by maps. The input is the memory
// for entries, where which listing fails, and the names of both sides in the order of their
// listings, which may come twice and may be bad.
func FuzzJoin(f *testing.F) {
	f.Add(uint16(0), uint8(0), uint16(0), []byte("\x00\x01\x00\x02"), []byte("\x00\x02\x00\x01"))
	f.Add(uint16(100), uint8(1), uint16(3), []byte("\x00\x01\x00\x02\x00\x03"), []byte("\x00\x02\x00\x02\x00\x09"))
	f.Add(uint16(1), uint8(6), uint16(30), pairs(0, 200), pairs(100, 300))
	f.Add(uint16(9), uint8(7), uint16(90), pairs(50, 400), pairs(0, 350))
	f.Fuzz(func(t *testing.T, held uint16, fails uint8, at uint16, left, right []byte) {
		a, b := &dirOf{names: names(left)}, &dirOf{names: names(right)}
		side, pass := []*dirOf{nil, a, b}[fails%3], int(fails/3)%8+1
		if side != nil {
			side.before = func(n, i int) error {
				if n == pass && i == int(at)+1 {
					return vfs.ErrIO
				}
				return nil
			}
		}
		l := join(t, a, b, int(held)*16)
		faults := errors.Join(slices.Concat(l.faults, l.rights)...)
		check(t, l, names(left), names(right), errors.Is(faults, vfs.ErrIO) || errors.Is(faults, walk.ErrStuck))
	})
}

// check compares what a join has claimed with the names of both sides.
func check(t *testing.T, l *log, left, right []string, failed bool) {
	on := func(names []string) map[string]int {
		m := map[string]int{}
		for _, n := range names {
			if vfs.CheckName(n) == nil {
				m[n]++
			}
		}
		return m
	}
	a, b, pairs, only, extra := on(left), on(right), on(l.pairs), on(l.left), on(l.extra)
	for name, n := range a {
		switch paired := pairs[name] + only[name]; {
		case paired > n, !failed && paired != n:
			t.Errorf("%q: %d times on the left, and claimed %d times", name, n, paired)
		case pairs[name] > min(b[name], 1), b[name] == 0 && pairs[name] > 0:
			t.Errorf("%q: a pair %d times", name, pairs[name])
		case b[name] > 0 && only[name] >= n:
			t.Errorf("%q is on both sides, and claimed to be on the left only", name)
		}
	}
	for name := range b {
		if want := 1 - min(a[name], 1); extra[name] > want || !failed && extra[name] != want {
			t.Errorf("%q is claimed to be extra %d times, want %d", name, extra[name], want)
		}
	}
	for _, m := range []map[string]int{pairs, only, extra} {
		for name := range m {
			if a[name]+b[name] == 0 {
				t.Errorf("%q is on neither side", name)
			}
		}
	}
}

// names are those that the input has: two bytes each.
func names(in []byte) (names []string) {
	bad := []string{"", "..", "a/b"}
	for ; len(in) >= 2 && len(names) < 2000; in = in[2:] {
		n := int(binary.BigEndian.Uint16(in))
		if n >= len(bad) {
			names = append(names, fmt.Sprint(n))
		} else {
			names = append(names, bad[n])
		}
	}
	return names
}

func pairs(from, to uint16) (b []byte) {
	for i := from; i < to; i++ {
		b = binary.BigEndian.AppendUint16(b, i)
	}
	return b
}
