package snapshot

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// UseKind says what an object of a store is for.
type UseKind uint8

// The kinds.
const (
	UseTable  UseKind = iota // the sums of parts and packs
	UseNumber                // a part or pack that has a number, whether anything leads to it or not
	UsePart                  // lines of the manifest
	UseIndex                 // of a large directory
	UseList                  // the pieces of a large file
	UseHoles                 // of a file with many
	UseExtra                 // lists and extended attributes that are long
	UseData                  // bytes of a file
)

// Use is what a snapshot needs of an object: all of it, or a range of a pack.
type Use struct {
	Kind  UseKind
	Sum   object.Sum // names the object
	Whole bool       // the object is nothing else
	// At and Len say which bytes of the object, as they are stored. Len is -1 if that is not known: of parts, and of what has a number.
	At, Len int64
	Size    int64      // of the bytes when they are unpacked; the same as Len if they are not packed. -1: not known
	Range   object.Sum // SHA-256 of the bytes as they are stored; zero: not known
}

// Site is what needs an object: a file, or a directory with all below it.
type Site struct {
	Names uint64 // counts those that were gone through so far: so it tells one from another
	Dir   bool
	w     *uses
	name  string
}

// Path is the path of the site in the snapshot, "" for the root. One that is longer than vfs.MaxPath loses its beginning.
func (s *Site) Path() string {
	path := ""
	for i := 1; i < len(s.w.way); i++ {
		path = join(path, s.w.way[i].name)
	}
	if s.name == "" {
		return path
	}
	return join(path, s.name)
}

// UsesOptions say who is told of what a snapshot needs. The calls are made one at a time, and an error of theirs ends all. What they are
// given is valid during the call.
type UsesOptions struct {
	// Use is called for each use, perhaps several times for what neighbours share.
	Use func(u *Use, at *Site) error
	// Damaged is called for what cannot be read because of one object: it is damaged, or cannot be read itself; err [IsOwn]. The rest
	// goes on. If it is nil, the first one ends all.
	Damaged func(at *Site, err error) error
	// All has what no other object is found by read as well: extended attributes, and the holes of files.
	All bool
}

const (
	// maxDeep bounds the directories with paths longer than vfs.MaxPath, whose lists do not say where they belong: each list of
	// theirs is met once.
	maxDeep = 1 << 18
	// maxSpans bounds the parts of large directories that lie in each other.
	maxSpans = 1 << 20
)

// Uses goes through all that a snapshot has, in the order of the tree, and says which objects it needs. It reads the manifest once, or nearly so: it
// holds a place for each directory on the way down. names is how many it has met.
func (s *Snapshot) Uses(ctx context.Context, o UsesOptions) (names uint64, err error) {
	w := &uses{s: s, o: &o, deep: make(map[[2]int64]struct{}), lost: make(map[int64]error)}
	if err := w.tables(ctx); err != nil {
		return 0, err
	}
	at := rootPlace()
	if err := w.entry(ctx, s.root, at); err != nil {
		return w.names, err
	}
	for len(w.way) > 0 {
		if err := w.step(ctx); err != nil {
			return w.names, err
		}
	}
	return w.names, nil
}

// uses is a Uses under way.
type uses struct {
	s     *Snapshot
	o     *UsesOptions
	way   []level
	spans int
	names uint64
	deep  map[[2]int64]struct{}
	lost  map[int64]error // tables that cannot be read, by their place
}

// level is a directory on the way down.
type level struct {
	name string
	list *lister
}

func (w *uses) site(name string, dir bool) *Site { return &Site{w.names, dir, w, name} }

// fails reports what cannot be read. It returns nil if the rest goes on.
func (w *uses) fails(ctx context.Context, at *Site, err error) error {
	if cerr := ctx.Err(); cerr != nil {
		return cerr
	}
	if w.o.Damaged == nil || !IsOwn(err) {
		return err
	}
	return w.o.Damaged(at, err)
}

// tables goes through the numbers of parts and packs.
func (w *uses) tables(ctx context.Context) error {
	at := w.site("", true)
	for i := range w.s.tables {
		t := &w.s.tables[i]
		if err := w.own(UseTable, t, at); err != nil {
			return err
		}
		b, err := w.s.piece(ctx, t)
		if err != nil {
			if err := w.fails(ctx, at, err); err != nil {
				return err
			}
			continue
		}
		for len(b) > 0 {
			u := Use{Kind: UseNumber, Whole: true, Len: -1, Size: -1}
			b = b[copy(u.Sum[:], b):]
			if u.Sum.IsZero() {
				continue
			}
			if err := w.o.Use(&u, at); err != nil {
				return err
			}
		}
	}
	return nil
}

// own reports the use of an object that is a piece.
func (w *uses) own(kind UseKind, p *Piece, at *Site) error {
	sum := object.Sum(p.Sum)
	return w.o.Use(&Use{Kind: kind, Sum: sum, Whole: true, Len: p.stored(), Size: p.Size, Range: sum}, at)
}

// step goes on to the next name.
func (w *uses) step(ctx context.Context) error {
	l := w.way[len(w.way)-1].list
	r, err := l.next(ctx)
	if err != nil {
		l.pass(err) // the names of further parts can be read
		return w.fails(ctx, w.site("", true), err)
	}
	if r == nil {
		w.up()
		return nil
	}
	at := l.place(r)
	l.done(r)
	e, err := decodeEntry(r.line, false)
	if err != nil {
		return w.fails(ctx, w.site(r.name, false), damaged(r.key, err))
	}
	return w.entry(ctx, e, at)
}

func (w *uses) up() {
	last := len(w.way) - 1
	w.spans -= len(w.way[last].list.d.list)
	w.way = w.way[:last]
}

// entry reports what one object needs. If it is a directory, it is gone into.
func (w *uses) entry(ctx context.Context, e *Entry, at place) error {
	w.names++
	site := w.site(e.Name, e.Attr.Type == vfs.TypeDir)
	if far := e.Extra.Far; far != nil {
		if err := w.own(UseExtra, far, site); err != nil {
			return err
		}
		if w.o.All {
			if _, err := w.s.extra(ctx, e); err != nil {
				if err := w.fails(ctx, site, err); err != nil {
					return err
				}
			}
		}
	}
	switch e.Attr.Type {
	case vfs.TypeReg:
		return w.file(ctx, &e.Content, int64(e.Attr.Size), site)
	case vfs.TypeDir:
		return w.dir(ctx, e, at, site)
	default:
		return nil
	}
}

// dir goes into a directory.
func (w *uses) dir(ctx context.Context, e *Entry, at place, site *Site) error {
	if i := e.listing.Index; i != nil {
		if err := w.own(UseIndex, i, site); err != nil {
			return err
		}
	} else if err := w.part(ctx, e.listing.Part, site); err != nil {
		return err
	}
	d, err := w.s.dir(ctx, e, at)
	if err == nil {
		err = w.bounds(e, d)
	}
	if err != nil {
		return w.fails(ctx, site, err)
	}
	if e.listing.Index != nil {
		for i := range d.list {
			if err := w.part(ctx, d.list[i].part, site); err != nil {
				return err
			}
		}
	}
	w.spans += len(d.list)
	w.way = append(w.way, level{e.Name, &lister{s: w.s, d: d}})
	return nil
}

// bounds returns an error if a directory lies where none of an honest writer does.
func (w *uses) bounds(e *Entry, d *dir) error {
	if len(w.way) >= maxDiffDepth {
		return damaged(w.s.key(), errDeep)
	}
	if w.spans+len(d.list) > maxSpans {
		return damaged(w.s.key(), fmt.Errorf("directories in each other with more than %d parts", maxSpans))
	}
	if !d.head.Deep {
		return nil
	}
	at := [2]int64{e.listing.Part, e.listing.Off}
	if i := e.listing.Index; i != nil {
		at = [2]int64{-1, int64(binary.BigEndian.Uint64(i.Sum[:]) >> 1)}
	}
	if _, met := w.deep[at]; met || len(w.deep) >= maxDeep {
		return damaged(w.s.key(), errPath)
	}
	w.deep[at] = struct{}{}
	return nil
}

// numbered is the sum of the object of a number. A table that cannot be read is asked for once.
func (w *uses) numbered(ctx context.Context, number int64) (sum object.Sum, err error) {
	table := number / tableObjects
	if err := w.lost[table]; err != nil {
		return sum, err
	}
	sum, err = w.s.numbered(ctx, number)
	if key, _ := OfObject(err); err != nil && key != w.s.key() && ctx.Err() == nil {
		w.lost[table] = err
	}
	return sum, err
}

// part reports the use of a part.
func (w *uses) part(ctx context.Context, number int64, site *Site) error {
	sum, err := w.numbered(ctx, number)
	if err != nil {
		return w.fails(ctx, site, err)
	}
	return w.o.Use(&Use{Kind: UsePart, Sum: sum, Whole: true, Len: -1, Size: -1}, site)
}

// file reports what the content of a file needs.
func (w *uses) file(ctx context.Context, c *Content, size int64, site *Site) error {
	data := int64(0)
	for i := range c.Pieces {
		data += c.Pieces[i].Size
		if err := w.data(ctx, &c.Pieces[i], site); err != nil {
			return err
		}
	}
	met := make(map[digest]int64) // lists: what is the same over and over has the same ones
	for i := range c.Lists {
		l := &c.Lists[i]
		data += l.Data
		before, again := met[l.Sum]
		if met[l.Sum] = l.Data; again && before == l.Data {
			continue
		}
		err := errSizes
		if again {
			err = w.fails(ctx, site, damaged(object.ContentKey(object.Sum(l.Sum)), err))
		} else {
			err = w.list(ctx, l, site)
		}
		if err != nil {
			return err
		}
	}
	if c.Sparse == nil {
		return nil
	}
	if err := w.own(UseHoles, c.Sparse, site); err != nil || !w.o.All {
		return err
	}
	b, err := w.s.piece(ctx, c.Sparse)
	if err == nil {
		if _, err = decodeHoles(b, data, size); err != nil {
			err = damaged(object.ContentKey(object.Sum(c.Sparse.Sum)), err)
		}
	}
	if err != nil {
		return w.fails(ctx, site, err)
	}
	return nil
}

// errSizes says that a file has one list twice, with different sizes.
var errSizes = errors.New("one list has two sizes")

// list reports what the pieces of a list need.
func (w *uses) list(ctx context.Context, l *List, site *Site) error {
	if err := w.own(UseList, &l.Piece, site); err != nil {
		return err
	}
	b, err := w.s.piece(ctx, &l.Piece)
	if err != nil {
		return w.fails(ctx, site, err)
	}
	pieces, _, err := decodeList(b, l.Data)
	if err != nil {
		return w.fails(ctx, site, damaged(object.ContentKey(object.Sum(l.Sum)), err))
	}
	for i := range pieces {
		if err := w.data(ctx, &pieces[i], site); err != nil {
			return err
		}
	}
	return nil
}

// data reports the use of a piece of a file.
func (w *uses) data(ctx context.Context, p *Piece, site *Site) error {
	if p.Pack == nil {
		return w.own(UseData, p, site)
	}
	sum, err := w.numbered(ctx, *p.Pack)
	if err != nil {
		return w.fails(ctx, site, err)
	}
	return w.o.Use(&Use{Kind: UseData, Sum: sum, At: p.At, Len: p.stored(), Size: p.Size, Range: object.Sum(p.Sum)}, site)
}

// Unpacker looks whether bytes that are stored are what a [Use] says. It is safe for concurrent use.
type Unpacker struct{ get *getter }

// NewUnpacker returns an Unpacker. What it unpacks takes up to 16 MiB for each call.
func NewUnpacker() (*Unpacker, error) {
	g, err := newGetter(nil)
	return &Unpacker{g}, err
}

// Check returns nil if stored, which is in the object of key, has size bytes: as it is, or unpacked if it is shorter than that.
func (u *Unpacker) Check(key string, stored []byte, size int64) error {
	n := int64(len(stored))
	if n < size && size <= maxPiece {
		b, err := u.get.unpack(key, stored, size, nil)
		if err != nil {
			return err
		}
		n = int64(len(b))
	}
	if n != size {
		return damaged(key, fmt.Errorf("a piece of %d bytes is unpacked to %d", size, n))
	}
	return nil
}
