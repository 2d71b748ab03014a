package walk

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestBadNames: a bad name is a fault, and nothing else is done with it.
func TestBadNames(t *testing.T) {
	bad := []string{"", ".", "..", "a/b", "nul\x00", strings.Repeat("x", 256), "/etc", strings.Repeat("y", 1<<20)}
	f := invented(func(dir uint64, from vfs.Pos) iter.Seq2[*vfs.Entry, error] {
		return func(yield func(*vfs.Entry, error) bool) {
			if dir != 1 || from != (vfs.Pos{}) {
				return
			}
			for i, name := range bad {
				if !yield(entry(name, uint64(10+i), vfs.TypeDir, uint64(i+1)), nil) {
					return
				}
			}
			yield(entry("good", 50, vfs.TypeReg, 99), nil)
		}
	})
	l := newLog(t)
	if err := l.walk(f, Options{}); err != nil {
		t.Fatal(err)
	}
	if len(l.faults) != len(bad) || len(l.entered) != 1 || !slices.Equal(l.entries, []string{"good"}) {
		t.Errorf("%d faults, entered %q, entries %q", len(l.faults), l.entered, l.entries)
	}
	for _, f := range l.faults {
		if len(f.path) > vfs.MaxName {
			t.Errorf("a name of %d bytes was passed on", len(f.path))
		}
	}
	if l.incomplete["."] == nil {
		t.Error("the directory counts as complete")
	}
}

// TestMissingAttributes: missing attributes of an entry are asked for once.
func TestMissingAttributes(t *testing.T) {
	f := invented(func(dir uint64, from vfs.Pos) iter.Seq2[*vfs.Entry, error] {
		return func(yield func(*vfs.Entry, error) bool) {
			if dir != 1 || from != (vfs.Pos{}) {
				return
			}
			bare := entry("bare", 10, vfs.TypeDir, 1)
			bare.Handle, bare.Attr = vfs.Handle{}, vfs.Attr{}
			noAttr := entry("no attributes", 20, vfs.TypeNone, 2)
			noAttr.Attr = vfs.Attr{}
			gone := entry("gone", 30, vfs.TypeNone, 3)
			gone.Handle, gone.Attr = vfs.Handle{}, vfs.Attr{}
			stale := entry("stale", 40, vfs.TypeNone, 4)
			stale.Attr = vfs.Attr{}
			mute := entry("mute", 50, vfs.TypeNone, 5)
			mute.Attr = vfs.Attr{}
			_ = yield(bare, nil) && yield(noAttr, nil) && yield(gone, nil) && yield(stale, nil) && yield(mute, nil)
		}
	})
	var asked []string
	f.lookup = func(_ vfs.Handle, name string) (vfs.Handle, vfs.Attr, error) {
		asked = append(asked, "lookup "+name)
		if name == "gone" {
			return vfs.Handle{}, vfs.Attr{}, vfs.ErrNoEnt
		}
		if name == "stale" {
			return handle(40), vfs.Attr{}, nil
		}
		return handle(10), attrs(10, vfs.TypeDir), nil
	}
	f.getAttr = func(h vfs.Handle) (vfs.Attr, error) {
		asked = append(asked, fmt.Sprint("getattr ", number(h)))
		switch number(h) {
		case 20:
			return attrs(20, vfs.TypeReg), nil
		case 40:
			return vfs.Attr{}, vfs.ErrStale
		case 50:
			return vfs.Attr{}, nil
		}
		return attrs(number(h), vfs.TypeDir), nil
	}
	l := newLog(t)
	if err := l.walk(f, Options{Parallel: 1}); err != nil {
		t.Fatal(err)
	}
	want := []string{"getattr 1", "lookup bare", "getattr 20", "lookup gone",
		"getattr 40", "lookup stale", "getattr 40", "getattr 50"}
	if !slices.Equal(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
	if !slices.Equal(l.entries, []string{"no attributes"}) || !slices.Equal(sorted(l.left), []string{".", "bare"}) {
		t.Errorf("entries %q, directories %q", l.entries, l.left)
	}
	if len(l.faults) != 3 || !errors.Is(l.faults[0].err, ErrVanished) || !errors.Is(l.incomplete["."], vfs.ErrStale) {
		t.Errorf("faults %v, incomplete %v", l.faults, l.incomplete)
	}
}

// TestStuck: listings without an end.
func TestStuck(t *testing.T) {
	tests := map[string]func(i uint64) uint64{ // the i'th cookie
		"one cookie":    func(uint64) uint64 { return 5 },
		"two cookies":   func(i uint64) uint64 { return i % 2 },
		"a long circle": func(i uint64) uint64 { return i % 10_000 },
		"a tail, a circle": func(i uint64) uint64 {
			if i < 3000 {
				return i
			}
			return 3000 + i%7
		},
	}
	for name, cookie := range tests {
		t.Run(name, func(t *testing.T) {
			var sent uint64
			f := invented(func(uint64, vfs.Pos) iter.Seq2[*vfs.Entry, error] {
				return func(yield func(*vfs.Entry, error) bool) {
					for i := range uint64(1_000_000) {
						sent++
						if !yield(entry("same", 10, vfs.TypeReg, cookie(i)), nil) {
							return
						}
					}
				}
			})
			l := newLog(t)
			if err := l.walk(f, Options{}); err != nil {
				t.Fatal(err)
			}
			if len(l.faults) != 1 || !errors.Is(l.faults[0].err, ErrStuck) || !errors.Is(l.incomplete["."], ErrStuck) {
				t.Errorf("faults %v, incomplete %v", l.faults, l.incomplete)
			}
			if sent > 60_000 {
				t.Errorf("noticed after %d entries", sent)
			}
		})
	}
}

// TestSharedCookies: a few names may share a cookie.
func TestSharedCookies(t *testing.T) {
	f := invented(func(uint64, vfs.Pos) iter.Seq2[*vfs.Entry, error] {
		return func(yield func(*vfs.Entry, error) bool) {
			for i := range uint64(100) {
				if !yield(entry(fmt.Sprint(i), 10+i, vfs.TypeReg, 1+i/4), nil) {
					return
				}
			}
		}
	})
	l := newLog(t)
	if err := l.walk(f, Options{}); err != nil || len(l.entries) != 100 || len(l.faults) != 0 {
		t.Errorf("%v, %d entries, %v", err, len(l.entries), l.faults)
	}
}

// forgetful lists n files, and forgets its cookies at each of the given places,
// once. Before each further listing, a file is added at the beginning.
func forgetful(n uint64, at ...uint64) *hooked {
	starts := uint64(0)
	return invented(func(_ uint64, from vfs.Pos) iter.Seq2[*vfs.Entry, error] {
		return func(yield func(*vfs.Entry, error) bool) {
			if from == (vfs.Pos{}) {
				starts++
			}
			for i := range starts - 1 {
				if !yield(entry(fmt.Sprint("new", i), 1_000_000+i, vfs.TypeReg, 1_000_000+i), nil) {
					return
				}
			}
			for e, err := range files(from.Cookie, n) {
				if len(at) > 0 && e.Next.Cookie > at[0] {
					at = at[1:]
					yield(nil, vfs.ErrBadCookie)
					return
				}
				if !yield(e, err) {
					return
				}
			}
		}
	})
}

func TestBadCookie(t *testing.T) {
	tests := []struct {
		name    string
		n       uint64
		at      []uint64
		entries int
		err     error
	}{
		{"at the start", 10, []uint64{0}, 11, nil},
		{"in the middle", 1000, []uint64{500}, 1001, nil},
		{"again and again", 1000, []uint64{10, 5, 900}, 1003, nil},
		{"too often", 1000, []uint64{10, 10, 10, 10}, 13, ErrRestart},
		{"too late", maxRemembered + 10, []uint64{maxRemembered + 5}, maxRemembered + 5, ErrRestart},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l := newLog(t)
			if err := l.walk(forgetful(tt.n, tt.at...), Options{}); err != nil {
				t.Fatal(err)
			}
			if len(l.entries) != tt.entries {
				t.Errorf("%d entries, want %d", len(l.entries), tt.entries)
			}
			if all := sorted(l.entries); len(slices.Compact(all)) != len(l.entries) {
				t.Error("an entry was visited twice")
			}
			if !errors.Is(l.incomplete["."], tt.err) || (tt.err == nil) != (len(l.faults) == 0) {
				t.Errorf("faults %v, incomplete %v", l.faults, l.incomplete)
			}
		})
	}
}

// repeated lists n names again and again, each time with another cookie. It gives up after so
// many entries that no bound is at work.
func repeated(n uint64) *hooked {
	return invented(func(dir uint64, from vfs.Pos) iter.Seq2[*vfs.Entry, error] {
		return func(yield func(*vfs.Entry, error) bool) {
			for i := from.Cookie; dir == 1 && i < 1_000_000; i++ {
				if !yield(entry(fmt.Sprint("f", i%n), 100+i%n, vfs.TypeReg, i+1), nil) {
					return
				}
			}
		}
	})
}

// TestNamesForEver: a server that gives the same names for ever, under new cookies, does not
// hold up the walk. A few names that come twice are no fault.
func TestNamesForEver(t *testing.T) {
	for _, n := range []uint64{1, 2, 100} {
		l := newLog(t)
		if err := l.walk(repeated(n), Options{}); err != nil {
			t.Fatal(err)
		}
		if len(l.faults) != 1 || !errors.Is(l.faults[0].err, ErrStuck) || !errors.Is(l.incomplete["."], ErrStuck) {
			t.Errorf("%d names: %v, %v", n, l.faults, l.incomplete)
		}
		var err error
		for _, err = range List(t.Context(), repeated(n), handle(1), 0) {
			if err != nil {
				break
			}
		}
		if !errors.Is(err, ErrStuck) {
			t.Errorf("%d names, listed alone: %v", n, err)
		}
	}
	l := newLog(t)
	if err := l.walk(invented(func(dir uint64, from vfs.Pos) iter.Seq2[*vfs.Entry, error] {
		return func(yield func(*vfs.Entry, error) bool) {
			for i := from.Cookie; dir == 1 && i < 2*maxSameName; i++ {
				if !yield(entry(fmt.Sprint("f", i/2), 100+i/2, vfs.TypeReg, i+1), nil) {
					return
				}
			}
		}
	}), Options{}); err != nil || len(l.faults) > 0 {
		t.Errorf("each name twice: %v, %v", err, l.faults)
	}
}
