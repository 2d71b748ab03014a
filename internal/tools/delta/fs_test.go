package delta

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// dirOf is an invented file system of one directory, which is object 1. Its listing gives names in
// their order; the number of a name, plus one, is its cookie.
type dirOf struct {
	vfs.FS
	names []string
	// before, if not nil, is called before the i'th entry of the n'th listing from the beginning,
	// both from 1. An error ends the listing there.
	before func(n, i int) error
	bare   bool // entries come without handles and attributes

	mu       sync.Mutex
	listings int
	shown    int // entries that had attributes
	lookups  []string
	found    func(name string) error // of a Lookup; nil: it finds nothing
}

func (f *dirOf) GetAttr(context.Context, vfs.Handle, vfs.Mask) (vfs.Attr, error) {
	return attrs(1, vfs.TypeDir), nil
}

func (f *dirOf) Lookup(_ context.Context, _ vfs.Handle, name string) (vfs.Handle, vfs.Attr, vfs.Attr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lookups = append(f.lookups, name)
	err := error(vfs.ErrNoEnt)
	if f.found != nil {
		err = f.found(name)
	}
	return handle(7), attrs(7, vfs.TypeReg), vfs.Attr{}, err
}

func (f *dirOf) ReadDir(_ context.Context, _ vfs.Handle, from vfs.Pos, want vfs.Mask, _ uint32) iter.Seq2[*vfs.Entry, error] {
	f.mu.Lock()
	if from == (vfs.Pos{}) {
		f.listings++
	}
	n := f.listings
	f.mu.Unlock()
	return func(yield func(*vfs.Entry, error) bool) {
		for i := from.Cookie; ; i++ {
			if f.before != nil {
				if err := f.before(n, int(i)+1); err != nil {
					yield(nil, err)
					return
				}
			}
			if i >= uint64(len(f.names)) {
				return
			}
			e := vfs.Entry{Name: []byte(f.names[i]), FileID: 100 + i, Handle: handle(100 + i), Attr: attrs(100+i, vfs.TypeReg), Next: vfs.Pos{Cookie: i + 1}}
			if f.bare || want == 0 {
				e.Handle, e.Attr = vfs.Handle{}, vfs.Attr{}
			} else {
				f.shown++
			}
			if !yield(&e, nil) {
				return
			}
		}
	}
}

// local is an invented directory of this host.
type local struct{ *dirOf }

func (local) Forget(vfs.Handle) {}

// handle is the n'th handle of an invented file system.
func handle(n uint64) vfs.Handle {
	h, err := vfs.MakeHandle(binary.BigEndian.AppendUint64(make([]byte, 24), n))
	if err != nil {
		panic(err)
	}
	return h
}

// attrs are the attributes of object n of an invented file system.
func attrs(n uint64, t vfs.Type) vfs.Attr {
	at := time.Unix(1_700_000_000+int64(n), 123_456_789)
	return vfs.Attr{Valid: vfs.MaskV3, Type: t, Mode: 0o755, Nlink: 1, Size: 10_000, Used: 12_288, FileID: n, Change: uint64(at.UnixNano()),
		FSID: [2]uint64{7, 7}, Atime: at, Mtime: at, Ctime: at}
}

// log is a visitor that records what a join claims, and joins each directory with the one that the
// right side has under its name.
type log struct {
	right vfs.Handle // of the root

	mu         sync.Mutex
	pairs      []string
	left       []string // only there
	extra      []string
	faults     []error
	names      []string // of the faults
	rights     []error  // faults of the right side
	incomplete []error

	onEntry func(d *Dir, there *vfs.Entry)
}

func (l *log) Enter(_ context.Context, d *Dir, there *vfs.Entry) (vfs.Handle, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case d.Parent == nil:
		return l.right, nil
	case there == nil:
		l.left = append(l.left, d.Path(""))
		return vfs.Handle{}, nil
	case there.Attr.Type != vfs.TypeDir:
		l.pairs = append(l.pairs, d.Path(""))
		return vfs.Handle{}, walk.ErrSkipDir
	}
	l.pairs = append(l.pairs, d.Path(""))
	return there.Handle, nil
}

func (l *log) Entry(_ context.Context, d *Dir, e, there *vfs.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.onEntry != nil {
		l.onEntry(d, there)
	}
	name := d.Path(string(e.Name))
	switch {
	case there == nil:
		l.left = append(l.left, name)
	case string(there.Name) != string(e.Name):
		return fmt.Errorf("%q was joined with %q", e.Name, there.Name)
	default:
		l.pairs = append(l.pairs, name)
	}
	return nil
}

func (l *log) Extra(_ context.Context, d *Dir, e *vfs.Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.extra = append(l.extra, d.Path(string(e.Name)))
	return nil
}

func (l *log) Fault(_ context.Context, d *Dir, name string, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults, l.names = append(l.faults, err), append(l.names, name)
	return nil
}

func (l *log) FaultRight(_ context.Context, d *Dir, name string, err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rights = append(l.rights, err)
	return nil
}

func (l *log) Leave(_ context.Context, d *Dir, incomplete error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(d.table.slots); n != 0 || d.table.bytes != 0 {
		return fmt.Errorf("%s is left with %d entries of %d bytes", d.Path(""), n, d.table.bytes)
	}
	if incomplete != nil {
		l.incomplete = append(l.incomplete, incomplete)
	}
	return nil
}

// join joins two invented directories, with so much memory.
func join(t testing.TB, left, right vfs.FS, held int) *log {
	t.Helper()
	l := &log{right: handle(1)}
	l.join(t, left, handle(1), right, Options{}, held)
	return l
}

// join joins two trees, with so much memory. All of it is given back.
func (l *log) join(t testing.TB, left vfs.FS, root vfs.Handle, right vfs.FS, o Options, held int) {
	t.Helper()
	b := &budget{left: held}
	if err := tree(t.Context(), left, root, right, o, l, b); err != nil {
		t.Fatal(err)
	}
	if b.left != held {
		t.Errorf("%d of %d bytes came back", b.left, held)
	}
}

// numbered are the names from a number to another, less one.
func numbered(from, to int) (names []string) {
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprint("name ", i))
	}
	return names
}

// shuffled returns names in another order.
func shuffled(names []string, seed uint64) []string {
	names = slices.Clone(names)
	rand.New(rand.NewPCG(seed, 1)).Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	return names
}

func same(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// is fails unless the join has claimed exactly this.
func (l *log) is(t *testing.T, what string, pairs, left, extra []string) {
	t.Helper()
	if !same(l.pairs, pairs) || !same(l.left, left) || !same(l.extra, extra) {
		t.Errorf("%s: %d pairs, %d on the left, %d on the right, want %d, %d, %d", what, len(l.pairs), len(l.left), len(l.extra), len(pairs), len(left), len(extra))
	}
}
