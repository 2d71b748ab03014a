package snapshot

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// Snapshot is an open snapshot. It is safe for concurrent use, and needs no closing: it ends with its store.
type Snapshot struct {
	ref     Ref
	get     *getter
	tables  []Piece
	objects int64
	uses    []PackUse
	root    *Entry
	tag     [tagLen]byte // distinguishes the handles of snapshots
	recent  [recentEntries]atomic.Pointer[recent]
}

// Open opens a snapshot that [Find] or [Snapshots] has returned.
func Open(ctx context.Context, store object.Store, ref Ref) (*Snapshot, error) {
	key := ref.key()
	r, ref, err := readRoot(ctx, store, key)
	if err != nil {
		return nil, err
	}
	s := &Snapshot{ref: ref, tables: r.Tables, objects: r.Objects, uses: r.Packs}
	if s.root, err = decodeEntry(r.Root, true); err != nil {
		return nil, damaged(key, err)
	}
	if s.get, err = newGetter(store); err != nil {
		return nil, err
	}
	tag := sha256.New()
	tag.Write([]byte(key + "\n"))
	tag.Write(r.Root)
	copy(s.tag[:], tag.Sum(nil))
	return s, nil
}

// Ref says which snapshot it is.
func (s *Snapshot) Ref() Ref { return s.ref }

// numbered is the sum of the object of a number.
func (s *Snapshot) numbered(ctx context.Context, number int64) (sum object.Sum, err error) {
	if number < 0 || number >= s.objects {
		return sum, damaged(s.key(), fmt.Errorf("there is no object of number %d", number))
	}
	t := &s.tables[number/tableObjects]
	b, err := s.get.piece(ctx, object.ContentKey(object.Sum(t.Sum)), t)
	if err != nil {
		return sum, err
	}
	copy(sum[:], b[number%tableObjects*int64(len(sum)):])
	if sum.IsZero() {
		return sum, damaged(s.key(), fmt.Errorf("the object of number %d was dropped", number))
	}
	return sum, nil
}

func (s *Snapshot) key() string { return s.ref.key() }

// piece returns the bytes of a piece.
func (s *Snapshot) piece(ctx context.Context, p *Piece) ([]byte, error) {
	sum, err := s.of(ctx, p)
	if err != nil {
		return nil, err
	}
	return s.get.piece(ctx, object.ContentKey(sum), p)
}

// lend calls do with the bytes of a piece, which it neither keeps nor changes.
func (s *Snapshot) lend(ctx context.Context, p *Piece, do func(b []byte)) error {
	sum, err := s.of(ctx, p)
	if err != nil {
		return err
	}
	return s.get.lend(ctx, object.ContentKey(sum), p, do)
}

// into reads a piece into b, which is as long as it.
func (s *Snapshot) into(ctx context.Context, p *Piece, b []byte) error {
	sum, err := s.of(ctx, p)
	if err != nil {
		return err
	}
	return s.get.into(ctx, object.ContentKey(sum), p, b)
}

// of returns the sum of the object that has a piece.
func (s *Snapshot) of(ctx context.Context, p *Piece) (object.Sum, error) {
	if p.Pack != nil {
		return s.numbered(ctx, *p.Pack)
	}
	return object.Sum(p.Sum), nil
}

// lines returns the lines of a part, and the key of its object.
func (s *Snapshot) lines(ctx context.Context, number int64) (b []byte, key string, err error) {
	sum, err := s.numbered(ctx, number)
	if err != nil {
		return nil, "", err
	}
	b, err = s.get.part(ctx, sum)
	return b, object.ContentKey(sum), err
}

// place is where the line of an entry is.
type place struct {
	part, off int64
	path      [pathLen]byte // says which path leads to it
	deep      bool          // the path is longer than vfs.MaxPath
}

const (
	tagLen  = 8
	pathLen = 8
	// rootPart stands in the place of the root, whose line is in no part.
	rootPart  = 1<<32 - 1
	handleLen = tagLen + 4 + 4 + pathLen + 1
)

// HandleLen is how many bytes a handle of a snapshot has.
const HandleLen = handleLen

// handle is the handle of a place. It is valid as long as the snapshot is, whoever opens it.
func (s *Snapshot) handle(at *place) vfs.Handle {
	b := make([]byte, 0, handleLen)
	b = append(b, s.tag[:]...)
	b = binary.BigEndian.AppendUint32(b, uint32(at.part))
	b = binary.BigEndian.AppendUint32(b, uint32(at.off))
	b = append(b, at.path[:]...)
	deep := byte(0)
	if at.deep {
		deep = 1
	}
	h, _ := vfs.MakeHandle(append(b, deep)) // its length is within the bounds
	return h
}

// placeOf is the place of a handle.
func (s *Snapshot) placeOf(h *vfs.Handle) (at place, err error) {
	b := h.Bytes()
	if len(b) != handleLen || [tagLen]byte(b[:tagLen]) != s.tag || b[handleLen-1] > 1 {
		return at, vfs.ErrBadHandle
	}
	b = b[tagLen:]
	at.part, at.off = int64(binary.BigEndian.Uint32(b)), int64(binary.BigEndian.Uint32(b[4:]))
	at.path = [pathLen]byte(b[8:])
	at.deep = b[8+pathLen] == 1
	return at, nil
}

// rootPlace is the place of the top directory.
func rootPlace() place { return place{part: rootPart, path: pathID("")} }

// pathID is what stands for a path in a place.
func pathID(path string) (id [pathLen]byte) {
	sum := sha256.Sum256([]byte(path))
	copy(id[:], sum[:])
	return id
}

// below is the place of the entry of name, in a directory at d with that head.
func below(d *place, h *head, name string, part, off int64) place {
	path := string(h.Dir) + "/" + name
	if h.Dir == "" {
		path = name
	}
	at := place{part: part, off: off, deep: d.deep || len(path) > vfs.MaxPath}
	if at.deep {
		path = string(d.path[:]) + "/" + name
	}
	at.path = pathID(path)
	return at
}

// Entry returns what the snapshot has of an object, by its handle.
func (s *Snapshot) Entry(ctx context.Context, h vfs.Handle) (*Entry, error) {
	e, _, _, err := s.decode(ctx, h)
	if err != nil {
		return nil, err
	}
	own := *e
	return &own, nil
}

// recent is an entry that was asked for a short time ago.
type recent struct {
	at place
	e  *Entry
}

// entry returns the entry of a handle, which nobody may change. A copy of a file asks for it many times.
func (s *Snapshot) entry(ctx context.Context, h vfs.Handle) (*Entry, place, error) {
	at, err := s.placeOf(&h)
	if err != nil {
		return nil, at, cmp.Or(ctx.Err(), err)
	}
	slot := &s.recent[uint64(at.part^at.off)%recentEntries]
	if r := slot.Load(); r != nil && r.at == at {
		return r.e, at, ctx.Err()
	}
	e, at, size, err := s.decode(ctx, h)
	if err == nil && size <= maxRecent {
		slot.Store(&recent{at, e})
	}
	return e, at, err
}

// decode reads the entry of a handle. size is that of its line.
func (s *Snapshot) decode(ctx context.Context, h vfs.Handle) (e *Entry, at place, size int, err error) {
	if err := ctx.Err(); err != nil {
		return nil, at, 0, err
	}
	if at, err = s.placeOf(&h); err != nil {
		return nil, at, 0, err
	}
	if at.part == rootPart {
		if at != rootPlace() {
			return nil, at, 0, vfs.ErrBadHandle
		}
		return s.root, at, 0, nil
	}
	if at.part >= s.objects {
		return nil, at, 0, vfs.ErrBadHandle
	}
	b, key, err := s.lines(ctx, at.part)
	if err != nil {
		return nil, at, 0, err
	}
	row, err := lineAt(b, at.off)
	if err != nil {
		return nil, at, 0, vfs.ErrBadHandle
	}
	if e, err = decodeEntry(row, false); err != nil {
		return nil, at, 0, damaged(key, err)
	}
	return e, at, len(row), nil
}

// dir is a directory, and where its lines are.
type dir struct {
	at   place
	head head
	list []chunk
}

// chunk is lines of a directory: a range of a part, or a whole part.
type chunk struct {
	span
	off, len int64 // len 0: the whole part
}

// holds reports whether a name may be in a chunk. So no name is in two, though an index may lead to the same lines by several numbers.
func (d *dir) holds(i int, name string) bool {
	return name >= d.list[i].first && (i+1 == len(d.list) || name < d.list[i+1].first)
}

// errOrder says that names are not where a search would find them.
var errOrder = errors.New("its names are not in order")

// errPath says that two directories have one list, or that one is in itself.
var errPath = errors.New("the list is that of another directory")

// dir opens the directory e at a place.
func (s *Snapshot) dir(ctx context.Context, e *Entry, at place) (*dir, error) {
	if e.Attr.Type != vfs.TypeDir {
		return nil, vfs.ErrNotDir
	}
	d := &dir{at: at}
	l := &e.listing
	var key string
	if l.Index != nil {
		b, err := s.piece(ctx, l.Index)
		if err != nil {
			return nil, err
		}
		key = object.ContentKey(object.Sum(l.Index.Sum))
		h, spans, err := decodeIndex(b)
		if err != nil {
			return nil, damaged(key, err)
		}
		d.head = h
		for _, sp := range spans {
			d.list = append(d.list, chunk{span: sp})
		}
	} else {
		b, k, err := s.lines(ctx, l.Part)
		if err != nil {
			return nil, err
		}
		key = k
		row, err := headAt(b, l)
		if err == nil {
			d.head, err = decodeHead(row)
		}
		if err != nil {
			return nil, damaged(key, err)
		}
		n := int64(len(row)) + 1
		d.list = []chunk{{span{part: l.Part}, l.Off + n, l.Len - n}}
	}
	// The list of a directory says where that is. So no list is reached by two paths: a store made by an
	// enemy has no tree without an end, but of directories that are deep.
	if d.head.Deep != at.deep || !at.deep && pathID(string(d.head.Dir)) != at.path {
		return nil, damaged(key, errPath)
	}
	return d, nil
}

// headAt is the first line of a list.
func headAt(b []byte, l *listing) ([]byte, error) {
	if l.Off+l.Len > int64(len(b)) || b[l.Off+l.Len-1] != '\n' {
		return nil, fmt.Errorf("a list of %d bytes at %d, in a part of %d", l.Len, l.Off, len(b))
	}
	return lineAt(b[:l.Off+l.Len], l.Off)
}

// chunk returns the lines of a chunk, the place in their part where they begin, and the key of the part.
func (s *Snapshot) chunk(ctx context.Context, c *chunk) (b []byte, off int64, key string, err error) {
	b, key, err = s.lines(ctx, c.part)
	if err == nil && c.off+c.len > 0 { // an empty range is at an offset: a head is before it
		b, off = b[c.off:c.off+c.len], c.off
	}
	return b, off, key, err
}

// find finds a name in a directory.
func (s *Snapshot) find(ctx context.Context, d *dir, name string) (*Entry, place, error) {
	i := findChunk(d.list, name) // a chunk that is a range has no first name, and is before all
	if i < 0 {
		return nil, place{}, vfs.ErrNoEnt
	}
	b, base, key, err := s.chunk(ctx, &d.list[i])
	if err != nil {
		return nil, place{}, err
	}
	off, err := findLine(b, name)
	if err != nil {
		return nil, place{}, damaged(key, err)
	}
	if off < 0 {
		return nil, place{}, vfs.ErrNoEnt
	}
	row, _, err := cutLine(b[off:])
	if err != nil {
		return nil, place{}, damaged(key, err)
	}
	e, err := decodeEntry(row, false)
	if err != nil {
		return nil, place{}, damaged(key, err)
	}
	return e, below(&d.at, &d.head, name, d.list[i].part, base+off), nil
}
