package crash

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// oneOf is what a thing may be: one value if that was acknowledged, more while a
// call under way, or one that was never answered, may have changed it.
type oneOf[T comparable] struct{ v []T }

func only[T comparable](v T) oneOf[T]         { return oneOf[T]{[]T{v}} }
func (o *oneOf[T]) may(v T)                   { o.v = append(o.v, v) }
func (o *oneOf[T]) is(v T)                    { o.v = []T{v} }
func (o *oneOf[T]) has(v T) bool              { return slices.Contains(o.v, v) }
func (o *oneOf[T]) sure() bool                { return len(o.v) == 1 }
func (o *oneOf[T]) String() string            { return fmt.Sprint(o.v) }
func (o *oneOf[T]) wrong(v T) bool            { return len(o.v) > 0 && !o.has(v) } // nothing is known of an empty one
func (o *oneOf[T]) where(f func(T) bool) bool { return slices.ContainsFunc(o.v, f) }

// object is what a client knows of an object.
type object struct {
	typ    nfs3.Ftype3
	handle []byte // nil: no reply has told it yet
	id     uint64
	owner  int  // the worker that it is of
	mayGo  bool // a call that was not answered may have removed it
	adrift int  // the life in which a rename to another directory was not answered
	found  bool // it was there before the server
	tried  bool // and was asked for

	mode, uid, gid oneOf[uint32]
	mtime          oneOf[nfs3.Nfstime3]
	acl            oneOf[string]
	hasACL         bool
	target         string
	data           content
	verf           [8]byte // of the exclusive create, as long as it is kept
	exclusive      bool
}

// settled reports whether nothing is in doubt but bytes that were never committed.
func (o *object) settled() bool {
	return o.handle != nil && !o.mayGo && o.mode.sure() && o.uid.sure() && o.gid.sure() &&
		len(o.mtime.v) <= 1 && len(o.acl.v) <= 1 && len(o.data.sizes) == 0
}

// cutAt reports whether the file may end at end because of the write, if it was not answered:
// when the kernel kills a process during a write, whole pages of it stay.
func (u *unstable) cutAt(end int) bool {
	return u.verf == [8]byte{} && u.off < end && end < u.end() && end%os.Getpagesize() == 0
}

// content is what may be in a file: what is stable, and on top of it any part of
// what was written since.
type content struct {
	stable  []byte
	pending []unstable
	sizes   []int // that a truncation which was not answered may leave
}

// unstable is a write that the server has not called stable.
type unstable struct {
	off  int
	data []byte
	verf [8]byte // with which it was answered; zero: it was not
}

func (u *unstable) end() int { return u.off + len(u.data) }

// cut takes the bytes in [from, to) from what is pending: something newer is
// there.
func (c *content) cut(from, to int) {
	var left []unstable
	for _, u := range c.pending {
		if u.off < from {
			left = append(left, unstable{u.off, u.data[:min(len(u.data), from-u.off)], u.verf})
		}
		if u.end() > to {
			skip := max(to-u.off, 0)
			left = append(left, unstable{u.off + skip, u.data[skip:], u.verf})
		}
	}
	c.pending = left
}

// write says that data is stable at off.
func (c *content) write(off int, data []byte) {
	c.cut(off, off+len(data))
	if n := off + len(data); n > len(c.stable) {
		c.stable = append(bytes.Clone(c.stable), make([]byte, n-len(c.stable))...)
	}
	copy(c.stable[off:], data)
}

// commit makes stable what was written under the verifier of a COMMIT. Anything
// else its writer has to send again.
func (c *content) commit(verf [8]byte) {
	var all []unstable
	c.pending = slices.DeleteFunc(c.pending, func(u unstable) bool {
		if u.verf == verf {
			all = append(all, u)
		}
		return u.verf == verf
	})
	for _, u := range all {
		c.write(u.off, u.data)
	}
}

// truncate says that the size n is stable.
func (c *content) truncate(n int) {
	c.cut(n, 1<<40)
	old := c.stable
	c.stable = make([]byte, n)
	copy(c.stable, old)
}

// size is the size that the file has if nothing was lost.
func (c *content) size() int {
	n := len(c.stable)
	for _, u := range c.pending {
		n = max(n, u.end())
	}
	return n
}

// check compares what was read.
func (c *content) check(got []byte) error {
	sized := len(got) == len(c.stable) || slices.Contains(c.sizes, len(got))
	for _, u := range c.pending {
		sized = sized || len(got) == max(len(c.stable), u.end()) || len(got) > len(c.stable) && u.cutAt(len(got))
	}
	if !sized {
		return fmt.Errorf("%d bytes, of which %d are stable; %d writes are not; truncated to %v", len(got), len(c.stable), len(c.pending), c.sizes)
	}
	for i, b := range got {
		if i < len(c.stable) && b == c.stable[i] || i >= len(c.stable) && b == 0 {
			continue
		}
		if !slices.ContainsFunc(c.pending, func(u unstable) bool { return i >= u.off && i < u.end() && u.data[i-u.off] == b }) {
			return fmt.Errorf("byte %d of %d is %#x; %d bytes are stable", i, len(got), b, len(c.stable))
		}
	}
	return nil
}

// ledger is what the clients of an export were told, all lives of the server
// through.
type ledger struct {
	mu    sync.Mutex
	root  *object
	names map[*object]map[string]*oneOf[*object] // by directory; nil: nothing
	gone  []*object                              // whose removal was acknowledged
	verfs map[[8]byte]int                        // the write verifiers, and the life of each
	life  int
	acked int
}

func newLedger() *ledger {
	root := &object{typ: nfs3.NF3DIR, owner: -1}
	return &ledger{root: root, names: map[*object]map[string]*oneOf[*object]{root: {}}, verfs: make(map[[8]byte]int)}
}

// place is a name.
type place struct {
	dir  *object
	name string
}

func (l *ledger) at(p place) *oneOf[*object] {
	d := l.names[p.dir]
	if d == nil {
		d = make(map[string]*oneOf[*object])
		l.names[p.dir] = d
	}
	o := d[p.name]
	if o == nil {
		v := only[*object](nil)
		o = &v
		d[p.name] = o
	}
	return o
}

// set says what a name stands for.
func (l *ledger) set(p place, o *object) { l.at(p).is(o) }

// links counts the names of an object; exact is false if that is in doubt. Names in a
// directory that is not among those in there, if that is not nil, are gone with it.
func (l *ledger) links(o *object, there map[*object]int) (n int, exact bool) {
	exact = true
	for dir, names := range l.names {
		if there != nil && there[dir] == 0 {
			continue
		}
		for _, v := range names {
			if v.has(o) {
				n++
				exact = exact && v.sure()
			}
		}
	}
	return n, exact
}

// sureNames counts the names that o has for certain.
func (l *ledger) sureNames(o *object) (n int) {
	for _, names := range l.names {
		for _, v := range names {
			if v.sure() && v.v[0] == o {
				n++
			}
		}
	}
	return n
}

// below are the objects for which that is true, and all that have a name in one of them.
func (l *ledger) below(that func(*object) bool) map[*object]bool {
	all := make(map[*object]bool)
	for more := true; more; {
		more = false
		for dir, names := range l.names {
			for _, v := range names {
				for _, o := range v.v {
					if o != nil && !all[o] && (all[dir] || that(o)) {
						all[o], more = true, true
					}
				}
			}
		}
	}
	return all
}

// lost is told that o has lost a name, as was acknowledged.
func (l *ledger) lost(o *object) {
	n, _ := l.links(o, nil)
	o.mayGo = n > 0 && l.sureNames(o) == 0
	if n == 0 {
		l.gone = append(l.gone, o)
		delete(l.names, o)
	}
}

// places lists the certain names of a worker's objects, those that ok accepts.
func (l *ledger) places(owner int, ok func(place, *object) bool) (list []place) {
	for dir, names := range l.names {
		if !dir.settled() {
			continue
		}
		for name, v := range names {
			if o := v.v[0]; v.sure() && o != nil && o.owner == owner && o.settled() && ok(place{dir, name}, o) {
				list = append(list, place{dir, name})
			}
		}
	}
	// In an order that depends on nothing but the work.
	slices.SortFunc(list, func(a, b place) int {
		if c := bytes.Compare([]byte(a.name), []byte(b.name)); c != 0 {
			return c
		}
		return int(a.dir.id) - int(b.dir.id)
	})
	return list
}

// empty reports whether a directory has surely no names.
func (l *ledger) empty(dir *object) bool {
	for _, v := range l.names[dir] {
		if !v.sure() || v.v[0] != nil {
			return false
		}
	}
	return true
}
