package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// What can differ between two snapshots, as [Difference.What] has it. Access times, times of change and file
// ids are not compared: a restore cannot give them.
const (
	DiffAdded   = "added"   // only in the second one
	DiffRemoved = "removed" // only in the first one
	DiffType    = "type"
	DiffContent = "content" // of a file, or where its holes are
	DiffTarget  = "target"  // of a symbolic link
	DiffDevice  = "device"  // the number of a device
	DiffMode    = "mode"
	DiffOwner   = "owner"
	DiffMtime   = "mtime"
	DiffLinks   = "links" // how many names the object has
	DiffACL     = "acl"
	DiffXattr   = "xattr"
)

// Difference is an object that two snapshots have not alike. It has [DiffAdded] or [DiffRemoved] alone; the
// objects below a directory that was added or removed follow, each by itself. One that was replaced by another
// type has [DiffType] alone. Any other has all that differs, in the order of the constants.
type Difference struct {
	Path string // below what is compared; "" is that itself
	What []string
	A, B *Entry // of the first and of the second snapshot; nil: not there
}

// DiffOptions say who is told of what a [Diff] finds. Calls are made one at a time; an error ends the Diff.
type DiffOptions struct {
	Found func(*Difference) error
	// Failed is called for what cannot be read: a directory, with all below it, or the lists and extended
	// attributes of an object. The rest goes on.
	Failed func(path string, err error) error
}

// maxDiffDepth bounds the directories in each other, as package walk does. What is below is a failure.
const maxDiffDepth = 16384

// errDeep is of a tree that may have no end.
var errDeep = fmt.Errorf("it lies more than %d directories deep", maxDiffDepth)

// Diff compares two objects of snapshots, mostly their roots, by the manifests alone: no file is read. Contents
// are the same if they are stored as the same bytes. So what another version of zstd has packed counts as
// changed, if the file was read again.
//
// It holds the lines of one part a side, and a place for each directory on the way down. compared is how many
// objects were met on either side.
func Diff(ctx context.Context, a, b *Snapshot, from, to vfs.Handle, o DiffOptions) (compared uint64, err error) {
	d := &differ{o: o, s: [2]*Snapshot{a, b}}
	var e [2]*Entry
	var at [2]place
	if e[0], at[0], err = a.entry(ctx, from); err != nil {
		return 0, err
	}
	if e[1], at[1], err = b.entry(ctx, to); err != nil {
		return 0, err
	}
	err = d.both(ctx, "", 0, e, at)
	return d.compared, err
}

// differ is a Diff under way.
type differ struct {
	o        DiffOptions
	s        [2]*Snapshot
	compared uint64
}

// both compares an object that is on both sides, and what is below it.
func (d *differ) both(ctx context.Context, path string, depth int, e [2]*Entry, at [2]place) error {
	d.compared++
	if e[0].Attr.Type != e[1].Attr.Type {
		if err := d.o.Found(&Difference{Path: path, What: []string{DiffType}, A: e[0], B: e[1]}); err != nil {
			return err
		}
		for i := range e { // only one of them has something below
			var one [2]*Entry
			one[i] = e[i]
			if err := d.below(ctx, path, depth, one, at); err != nil {
				return err
			}
		}
		return nil
	}
	what, err := d.differ(ctx, e)
	if err != nil {
		if err := d.fails(ctx, path, err); err != nil {
			return err
		}
	}
	if len(what) > 0 {
		if err := d.o.Found(&Difference{Path: path, What: what, A: e[0], B: e[1]}); err != nil {
			return err
		}
	}
	return d.below(ctx, path, depth, e, at)
}

// alone reports an object that one side has, and all below it.
func (d *differ) alone(ctx context.Context, path string, depth, side int, e *Entry, at place) error {
	d.compared++
	x := &Difference{Path: path, What: []string{DiffRemoved}, A: e}
	if side == 1 {
		x = &Difference{Path: path, What: []string{DiffAdded}, B: e}
	}
	if err := d.o.Found(x); err != nil {
		return err
	}
	var one [2]*Entry
	var places [2]place
	one[side], places[side] = e, at
	return d.below(ctx, path, depth, one, places)
}

// fails reports what cannot be read. It returns nil, unless the context has ended or the store has failed.
func (d *differ) fails(ctx context.Context, path string, err error) error {
	if cerr := ctx.Err(); cerr != nil {
		return cerr
	}
	if !errors.Is(err, ErrDamaged) && !errors.Is(err, errDeep) {
		return err
	}
	return d.o.Failed(path, err)
}

// below joins the lists of two directories by name. One of them may be nil, or no directory: it has nothing.
func (d *differ) below(ctx context.Context, path string, depth int, e [2]*Entry, at [2]place) error {
	var lists [2]*lister
	for i := range e {
		if e[i] == nil || e[i].Attr.Type != vfs.TypeDir {
			continue
		}
		in, err := d.s[i].dir(ctx, e[i], at[i])
		if err == nil && depth >= maxDiffDepth {
			err = errDeep
		}
		if err != nil {
			return d.fails(ctx, path, err)
		}
		lists[i] = &lister{s: d.s[i], d: in}
	}
	for {
		var rows [2]*row
		for i, l := range lists {
			var err error
			if l == nil {
				continue
			}
			if rows[i], err = l.next(ctx); err != nil {
				return d.fails(ctx, path, err)
			}
		}
		if rows[0] == nil && rows[1] == nil {
			return nil
		}
		if err := d.rows(ctx, path, depth, lists, rows); err != nil {
			return err
		}
	}
}

// rows compares the next lines of two lists, of which the lists that are used go on.
func (d *differ) rows(ctx context.Context, path string, depth int, lists [2]*lister, rows [2]*row) error {
	var used [2]*row
	switch a, b := rows[0], rows[1]; {
	case b == nil || a != nil && a.name < b.name:
		used[0] = a
	case a == nil || b.name < a.name:
		used[1] = b
	default:
		used = rows
	}
	var e [2]*Entry
	var at [2]place
	var below string
	alike := used[0] != nil && used[1] != nil && bytes.Equal(used[0].line, used[1].line) && bytes.Contains(used[0].line, []byte(`,"content":`))
	for i, r := range used {
		if r == nil {
			continue
		}
		below = join(path, r.name)
		at[i] = lists[i].place(r)
		lists[i].done(r)
		if alike {
			continue
		}
		var err error
		if e[i], err = decodeEntry(r.line, false); err != nil {
			return d.fails(ctx, below, damaged(r.key, err))
		}
	}
	switch {
	case alike:
		d.compared++
		return ctx.Err()
	case e[0] != nil && e[1] != nil:
		return d.both(ctx, below, depth+1, e, at)
	case e[0] != nil:
		return d.alone(ctx, below, depth+1, 0, e[0], at[0])
	}
	return d.alone(ctx, below, depth+1, 1, e[1], at[1])
}

// join is the path of name below path. One that is longer than vfs.MaxPath loses its beginning, as in package
// walk: each directory on the way down holds its own.
func join(path, name string) string {
	switch {
	case path == "":
		return name
	case len(path)+1+len(name) > vfs.MaxPath:
		return ".../" + name
	}
	return path + "/" + name
}

// lister goes through the lines of a directory. Between two calls it holds its place alone.
type lister struct {
	s    *Snapshot
	d    *dir
	i    int   // chunk
	off  int64 // in it
	last string
	bad  map[object.Sum]struct{} // parts that have failed here, and tables that lead to them
}

// row is a line of a directory.
type row struct {
	name string
	line []byte
	key  string // of its object
	at   int64  // where it begins in its part
}

// next is the line at hand; nil: there is none.
func (l *lister) next(ctx context.Context) (*row, error) {
	for l.i < len(l.d.list) {
		if l.known(ctx) {
			l.i, l.off = l.i+1, 0
			continue
		}
		b, base, key, err := l.s.chunk(ctx, &l.d.list[l.i])
		if err != nil {
			return nil, err
		}
		if l.off >= int64(len(b)) {
			l.i, l.off = l.i+1, 0
			continue
		}
		line, err := lineAt(b, l.off)
		if err != nil {
			return nil, damaged(key, err)
		}
		name, err := lineName(line)
		if err == nil && (name <= l.last || !l.d.holds(l.i, name)) {
			err = errOrder
		}
		if err != nil {
			return nil, damaged(key, err)
		}
		return &row{name, line, key, base + l.off}, nil
	}
	return nil, nil
}

// pass goes on behind the part at hand, which has failed: so has each further number that leads to it. They are not read again.
func (l *lister) pass(err error) {
	key, _ := OfObject(err)
	if sum, ok := object.ContentSum(key); ok {
		if l.bad == nil {
			l.bad = make(map[object.Sum]struct{})
		}
		l.bad[sum] = struct{}{}
	}
	l.i, l.off = l.i+1, 0
}

// known reports whether the part at hand has failed here before.
func (l *lister) known(ctx context.Context) bool {
	number := l.d.list[l.i].part
	if len(l.bad) == 0 || number < 0 || number >= l.s.objects {
		return false
	}
	if _, bad := l.bad[object.Sum(l.s.tables[number/tableObjects].Sum)]; bad {
		return true
	}
	sum, err := l.s.numbered(ctx, number)
	_, bad := l.bad[sum]
	return err == nil && bad
}

// place is where a line is.
func (l *lister) place(r *row) place {
	return below(&l.d.at, &l.d.head, r.name, l.d.list[l.i].part, r.at)
}

// done goes on behind a line.
func (l *lister) done(r *row) {
	l.last = r.name
	l.off += int64(len(r.line)) + 1
}

// differ says what differs of two objects of one type.
func (d *differ) differ(ctx context.Context, e [2]*Entry) (what []string, err error) {
	a, b := &e[0].Attr, &e[1].Attr
	isDir := a.Type == vfs.TypeDir
	for _, c := range [...]struct {
		what   string
		differ bool
	}{
		{DiffContent, a.Type == vfs.TypeReg && (a.Size != b.Size || !sameContent(&e[0].Content, &e[1].Content))},
		{DiffTarget, e[0].Target != e[1].Target},
		{DiffDevice, a.Rdev != b.Rdev && (a.Type == vfs.TypeBlock || a.Type == vfs.TypeChar)},
		{DiffMode, a.Mode != b.Mode},
		{DiffOwner, a.UID != b.UID || a.GID != b.GID},
		{DiffMtime, !a.Mtime.Equal(b.Mtime)},
		{DiffLinks, a.Nlink != b.Nlink && !isDir},
	} {
		if c.differ {
			what = append(what, c.what)
		}
	}
	more, err := d.extras(ctx, e)
	return append(what, more...), err
}

// sameContent reports whether two files are stored as the same bytes, and have the same holes.
func sameContent(a, b *Content) bool {
	same := func(p, q *Piece) bool { return p.Sum == q.Sum && p.Size == q.Size }
	far := func(p, q *Piece) bool { return (p == nil) == (q == nil) && (p == nil || same(p, q)) }
	return slices.EqualFunc(a.Pieces, b.Pieces, func(p, q Piece) bool { return same(&p, &q) }) &&
		slices.EqualFunc(a.Lists, b.Lists, func(p, q List) bool { return same(&p.Piece, &q.Piece) }) &&
		slices.Equal(a.Holes, b.Holes) && far(a.Sparse, b.Sparse)
}

// extras says what differs of the lists and extended attributes.
func (d *differ) extras(ctx context.Context, e [2]*Entry) (what []string, err error) {
	p, q := e[0].Extra.Far, e[1].Extra.Far
	if e[0].Extra.empty() && e[1].Extra.empty() || p != nil && q != nil && p.Sum == q.Sum {
		return nil, nil
	}
	var x [2]*Extra
	for i := range e {
		if x[i], err = d.s[i].extra(ctx, e[i]); err != nil {
			return nil, err
		}
	}
	if !slices.Equal(x[0].Access, x[1].Access) || !slices.Equal(x[0].Default, x[1].Default) {
		what = append(what, DiffACL)
	}
	if !sameXattrs(x[0].Xattrs, x[1].Xattrs) {
		what = append(what, DiffXattr)
	}
	return what, nil
}

// sameXattrs compares extended attributes, whose order says nothing.
func sameXattrs(a, b []Xattr) bool {
	values := make(map[text][]byte, len(a))
	for _, x := range a {
		values[x.Name] = x.Value
	}
	for _, x := range b {
		if v, ok := values[x.Name]; !ok || !bytes.Equal(v, x.Value) {
			return false
		}
	}
	return len(a) == len(b)
}
