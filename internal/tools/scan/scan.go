package scan

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// Options says what is counted.
type Options struct {
	Now   time.Time // what ages are reckoned from
	Top   int       // rows of the lists of the largest; 0: DefaultTop
	Depth int       // a table has the directories so many levels below a place; negative: none

	// Progress, if not nil, is called now and then with how many names and bytes were counted since the last call.
	Progress func(entries, bytes uint64)
}

// Scan counts what lies in trees. Its Trees may be walked at the same time.
type Scan struct {
	o     Options
	links *Links
	ages  ages
	abc   *alphabet
	seed  maphash.Seed
	parts [parts]part
	next  atomic.Uint32 // the part that the next directory gets
	names atomic.Int64  // hashes that are kept
	most  int64         // of them: maxNames
	short atomic.Bool   // something could not be looked at

	mu    sync.Mutex
	table top
	rest  Cell // of directories that are not in the table
}

// part is a set of counts, with its lock.
type part struct {
	mu sync.Mutex
	tally
	_ [64]byte // the next one is on another cache line
}

// New returns a Scan that has counted nothing.
func New(o Options) (*Scan, error) {
	if o.Top == 0 {
		o.Top = DefaultTop
	}
	if o.Top < 1 || o.Top > MaxTop {
		return nil, fmt.Errorf("a list of the largest has 1 to %d rows", MaxTop)
	}
	s := &Scan{o: o, links: NewLinks(), ages: newAges(o.Now), abc: newAlphabet(), seed: maphash.MakeSeed(), most: maxNames}
	s.table.max = maxTable
	for i := range s.parts {
		s.parts[i].init(o.Top)
	}
	return s, nil
}

// Tree is the visitor of a walk through a place. Its Descend belongs into the walk's options.
type Tree struct {
	s *Scan
	// Spell spells the path of name in d, or of d itself if name is empty.
	Spell func(d *walk.Dir, name []byte) string
	// Failed is told of what could not be looked at: name in d, or the rest of d if it is empty.
	Failed func(d *walk.Dir, name string, err error)
	// Elsewhere reports whether a directory is left out; nil: none is. It counts as an entry.
	Elsewhere func(child *walk.Dir) bool
}

// Tree returns the visitor for one place.
func (s *Scan) Tree() *Tree { return &Tree{s: s} }

// dir is what is known of a directory under way. Its own goroutine alone uses it, but for below.
type dir struct {
	part    *part
	depth   int
	entries uint64 // directly in it
	others  uint64 // of them, those that are not walked
	bytes   uint64 // of files directly in it, without further names
	used    uint64 // of all that is directly in it but directories
	pathLen int    // bytes of its path below the place
	below   sums   // what the directories in it have, with all below them

	names     []uint64 // hashes, in lower case
	kept      int64    // how many of them are reserved
	capital   bool     // a name has a capital letter
	unchecked bool     // there was no room for all names

	told [2]uint64 // entries and bytes that Progress has been told of
}

// Single counts an object that is a place itself, and no directory.
func (s *Scan) Single(name []byte, a *vfs.Attr, path string) {
	d := &dir{part: &s.parts[0]}
	s.count(d, &entry{name, a, 0, func() string { return path }}, len(name))
	s.tell(d)
}

// Enter begins with a directory.
func (t *Tree) Enter(_ context.Context, d *walk.Dir) error {
	x := &dir{part: &t.s.parts[t.s.next.Add(1)%parts], depth: d.Depth()}
	if d.Parent != nil {
		x.pathLen = d.Parent.Data.(*dir).pathLen + len(d.Name) + 1
	} else {
		// No listing has the place itself.
		x.part.mu.Lock()
		x.part.totals.Entries++
		x.part.depths[0]++
		x.part.object(&entry{nil, &d.Attr, 0, nil}, &t.s.ages)
		x.part.mu.Unlock()
	}
	x.below.add(Sum{Entries: 1, Used: d.Attr.Used})
	d.Data = x
	return nil
}

// Descend counts a directory that a listing has, and reports whether it is to be listed.
func (t *Tree) Descend(child *walk.Dir) bool {
	d := child.Parent
	t.entry(d, []byte(child.Name), &child.Attr)
	if t.Elsewhere != nil && t.Elsewhere(child) {
		d.Data.(*dir).others++
		return false
	}
	return true
}

// Entry counts any other object.
func (t *Tree) Entry(_ context.Context, d *walk.Dir, e *vfs.Entry) error {
	t.entry(d, e.Name, &e.Attr)
	d.Data.(*dir).others++
	return nil
}

// tellEach is after how many entries of a directory Progress is called.
const tellEach = 1024

func (t *Tree) entry(d *walk.Dir, name []byte, a *vfs.Attr) {
	x := d.Data.(*dir)
	t.s.count(x, &entry{name, a, x.depth + 1, func() string { return t.Spell(d, name) }}, x.pathLen+len(name))
	if x.entries%tellEach == 0 {
		t.s.tell(x)
	}
}

// count counts an object in d.
func (s *Scan) count(d *dir, e *entry, pathLen int) {
	var buf [vfs.MaxName]byte
	name := s.abc.read(e.name, s.seed, &buf)
	s.remember(d, &name)
	again := s.links.Again(e.attr)
	isFile := e.attr.Type == vfs.TypeReg
	d.entries++
	p := d.part
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spelled(e, &name, buf[:len(e.name)], pathLen)
	if again {
		p.totals.Hardlinks++
		return
	}
	if isFile {
		d.bytes += e.attr.Size
		p.extension(buf[:len(e.name)], name.ext, e.attr.Size)
	}
	if e.attr.Type != vfs.TypeDir {
		d.used += e.attr.Used
	}
	p.object(e, &s.ages)
}

// remember keeps the hash of a name, if there is room.
func (s *Scan) remember(d *dir, name *spelling) {
	d.capital = d.capital || name.flags&upper != 0
	if int64(len(d.names)) == d.kept {
		more := max(d.kept, 32)
		if d.unchecked || s.names.Add(more) > s.most {
			if !d.unchecked {
				s.names.Add(-more)
			}
			d.unchecked = true
			return
		}
		d.kept += more
	}
	d.names = append(d.names, name.hash)
}

// tell tells Progress what is new in d.
func (s *Scan) tell(d *dir) {
	if s.o.Progress != nil {
		s.o.Progress(d.entries-d.told[0], d.bytes-d.told[1])
	}
	d.told = [2]uint64{d.entries, d.bytes}
}

// Fault counts what could not be looked at. What has vanished is no failure.
func (t *Tree) Fault(_ context.Context, d *walk.Dir, name string, err error) error {
	p := d.Data.(*dir).part
	if errors.Is(err, walk.ErrVanished) {
		p.mu.Lock()
		p.totals.Vanished++
		p.mu.Unlock()
		return nil
	}
	if name != "" && errors.Is(err, vfs.ErrNameTooLong) {
		p.mu.Lock()
		p.found(tooLong, func() string { return t.Spell(d, []byte(name)) })
		p.mu.Unlock()
	}
	t.s.short.Store(true)
	d.Data.(*dir).below.short.Store(true)
	t.Failed(d, name, err)
	return nil
}

// Leave counts what is known of a directory by then.
func (t *Tree) Leave(_ context.Context, d *walk.Dir, _ error) error {
	x, path := d.Data.(*dir), func() string { return t.Spell(d, nil) }
	p := x.part
	p.mu.Lock()
	p.directory(x, path)
	p.alike(x, path)
	p.mu.Unlock()
	t.s.names.Add(-x.kept)
	x.names = nil
	t.s.tell(x)
	sum := x.below.sum()
	sum.Size += x.bytes
	sum.Used += x.used
	sum.Entries += x.others
	if d.Parent != nil {
		d.Parent.Data.(*dir).below.add(sum)
	}
	if d.Depth() == t.s.o.Depth {
		t.s.row(sum, path)
	}
	return nil
}

// row adds a directory to the table.
func (s *Scan) row(sum Sum, path func() string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	value := int64(min(sum.Size, 1<<63-1))
	if !s.table.wants(value) {
		s.rest.add(Cell{sum.Entries, sum.Size})
		return
	}
	if len(s.table.items) == s.table.max {
		s.rest.add(s.table.items[0].cell)
	}
	s.table.add(item{value, Cell{sum.Entries, sum.Size}, path()})
}
