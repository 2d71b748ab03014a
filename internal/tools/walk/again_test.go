package walk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// parts lists each directory as often as asked, and visits a part of the names each time.
type parts struct {
	of   int
	mu   sync.Mutex
	pass map[string]int // by path
	fail error          // of the last Again
}

func (p *parts) wants(d *Dir, name []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, b := range name {
		n += int(b)
	}
	return n%p.of == p.pass[d.Path("")]
}

func (p *parts) again(_ context.Context, d *Dir) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pass[d.Path("")]++
	if p.pass[d.Path("")] < p.of {
		return true, nil
	}
	return false, p.fail
}

// TestAgain walks directories several times, a part of the names each time, with so many
// subdirectories that listings are suspended. Everything is visited once, in the order that a
// Visitor knows.
func TestAgain(t *testing.T) {
	f := memfs.New(memfs.Options{})
	var paths, dirs, entries []string
	for i := range 1000 {
		dir := fmt.Sprintf("d%d", i)
		paths, dirs = append(paths, dir+"/", dir+"/a", dir+"/b", fmt.Sprint("f", i)), append(dirs, dir)
		entries = append(entries, dir+"/a", dir+"/b", fmt.Sprint("f", i))
	}
	build(t, f, paths...)
	dirs = append(dirs, ".")
	for _, parallel := range []int{1, 16} {
		l, p := newLog(t), &parts{of: 5, pass: make(map[string]int)}
		listed := 0
		o := Options{Parallel: parallel, Wants: p.wants, Again: p.again, Listed: func() { listed++ }}
		if err := l.walk(f, o); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(sorted(l.entered), sorted(dirs)) || !slices.Equal(sorted(l.left), sorted(dirs)) || !slices.Equal(sorted(l.entries), sorted(entries)) {
			t.Errorf("parallel %d: %d directories entered and %d left, %d entries", parallel, len(l.entered), len(l.left), len(l.entries))
		}
		if len(l.faults)+len(l.incomplete) > 0 || p.pass["."] != 5 || listed != 1 {
			t.Errorf("parallel %d: %v, %v, %d listings, told of their end %d times", parallel, l.faults, l.incomplete, p.pass["."], listed)
		}
	}
	l, p := newLog(t), &parts{of: 2, pass: make(map[string]int), fail: errors.New("enough")}
	if err := l.walk(f, Options{Wants: p.wants, Again: p.again}); !errors.Is(err, p.fail) {
		t.Errorf("%v", err)
	}
}

// TestNotAgain: after a fault that cuts a listing short nobody is asked whether to list it again.
// Names that are not wanted are no faults.
func TestNotAgain(t *testing.T) {
	l, p := newLog(t), &parts{of: 3, pass: make(map[string]int)}
	if err := l.walk(forgetful(1000, 10, 10, 10, 10), Options{Wants: p.wants, Again: p.again}); err != nil {
		t.Fatal(err)
	}
	if len(l.faults) != 1 || p.pass["."] != 0 {
		t.Errorf("%v, asked %d times", l.faults, p.pass["."])
	}
	l = newLog(t)
	none := func(*Dir, []byte) bool { return false }
	if err := l.walk(repeated(1), Options{Wants: none}); err != nil || len(l.faults) != 1 || !errors.Is(l.faults[0].err, ErrStuck) {
		t.Errorf("%v, %v", err, l.faults)
	}
	f := memfs.New(memfs.Options{})
	build(t, f, "a/", "a/f", "g")
	l = newLog(t)
	if err := l.walk(f, Options{Wants: none}); err != nil || len(l.entered) != 1 || len(l.entries)+len(l.faults) > 0 {
		t.Errorf("%v, entered %q, entries %q, %v", err, l.entered, l.entries, l.faults)
	}
}

// TestDescend: a directory is left out, or goes on with what was set for it.
func TestDescend(t *testing.T) {
	f := memfs.New(memfs.Options{})
	build(t, f, "a/", "a/b/", "a/no/", "a/no/f", "no/", "no/f", "g")
	l := newLog(t)
	l.onEnter = func(d *Dir) error {
		if d.Parent != nil && d.Data != "of "+d.Path("") {
			t.Errorf("%s has %v", d.Path(""), d.Data)
		}
		return nil
	}
	err := l.walk(f, Options{Descend: func(child *Dir) bool {
		child.Data = "of " + child.Path("")
		return !strings.HasSuffix(child.Name, "no") && child.Attr.Type == vfs.TypeDir
	}})
	if err != nil || !slices.Equal(sorted(l.left), []string{".", "a", "a/b"}) || !slices.Equal(l.entries, []string{"g"}) {
		t.Errorf("%v, %q, %q", err, l.left, l.entries)
	}
}
