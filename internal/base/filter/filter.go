package filter

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// Options say what is chosen. The zero Options choose all but snapshots.
type Options struct {
	Rules []Rule
	List  *List // nil: all
	// Newer, MinSize and MaxSize are of files alone: modified after, and bytes at least and at most.
	Newer            time.Time
	MinSize, MaxSize *uint64
	// FilesAlone says that nothing but files is chosen, and the directories on the way to them.
	FilesAlone bool
	// Snapshots says that directories of snapshots are chosen as others are.
	Snapshots bool
}

// Filter says what is chosen. It may be used concurrently.
type Filter struct {
	o         Options
	rules     []rule
	path      []*pattern // of the rules that match paths
	pathWords int
	top       *dir

	left, snapshots atomic.Uint64
}

// rule is a Rule whose pattern is ready.
type rule struct {
	*pattern
	include bool
	state   int // of a path: where its states begin in those of a directory
}

// dir is what is known of a directory.
type dir struct {
	states []uint64 // of the patterns that match paths, behind the directory's slash
	list   part
}

// New makes a Filter. What is wrong with a pattern is an error that says where it stands.
func New(o Options) (*Filter, error) {
	f := &Filter{o: o}
	if len(o.Rules) > maxRules {
		return nil, fmt.Errorf("there are more than %d rules", maxRules)
	}
	words := 0
	for _, r := range o.Rules {
		p, err := parsePattern(r.Pattern)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.From, err)
		}
		f.rules = append(f.rules, rule{p, r.Include, f.pathWords})
		words += p.words
		if p.path {
			f.path = append(f.path, p)
			f.pathWords += p.words
		}
		if words > maxWords || f.pathWords > maxPathWords {
			return nil, fmt.Errorf("%s: the patterns are too long, all together", r.From)
		}
	}
	f.top = &dir{states: make([]uint64, f.pathWords)}
	at := 0
	for _, p := range f.path {
		p.begin(f.top.states[at : at+p.words])
		at += p.words
	}
	if o.List != nil {
		f.top.list = o.List.all()
	}
	return f, nil
}

// Anew forgets what was counted and met, for one that begins anew. Nobody may use the Filter meanwhile.
func (f *Filter) Anew() {
	if f == nil {
		return
	}
	f.left.Store(0)
	f.snapshots.Store(0)
	if l := f.o.List; l != nil {
		l.met = make([]atomic.Uint32, len(l.met))
		f.top.list = l.all()
	}
}

// Choose reports whether an entry of a directory is chosen. in is what Choose has returned as below for that
// directory, or nil for the top of the tree. e has its type, and of a file size and mtime. Nothing is allocated but for a
// directory whose path or list matters. A nil Filter chooses all.
func (f *Filter) Choose(in any, e *vfs.Entry) (below any, ok bool) {
	return f.choose(in, e, true)
}

// Would is Choose for an entry that is not of the tree, but of another one beside it: nothing in the list is met.
func (f *Filter) Would(in any, e *vfs.Entry) (below any, ok bool) { return f.choose(in, e, false) }

func (f *Filter) choose(in any, e *vfs.Entry, meet bool) (below any, ok bool) {
	if f == nil {
		return nil, true
	}
	d, isDir := f.top, e.Attr.Type == vfs.TypeDir
	if in != nil {
		d = in.(*dir)
	}
	var listed part
	named := false
	if f.o.List != nil {
		var at int
		if listed, at, named = f.o.List.find(d.list, e.Name); meet {
			f.o.List.mark(at)
		}
		if !named && !d.list.whole || !isDir && !listed.whole {
			return nil, false
		}
	}
	if isDir && !named && f.isSnapshot(e.Name) || !f.fits(&e.Attr) || !f.allows(d, e.Name, isDir) {
		return nil, false
	}
	if !isDir || len(f.path) == 0 && f.o.List == nil {
		return nil, true
	}
	return f.descend(d, string(e.Name), listed), true
}

// isSnapshot reports whether a directory of this name is left out, as servers show snapshots in it.
func (f *Filter) isSnapshot(name []byte) bool { return !f.o.Snapshots && IsSnapshot(name) }

// IsSnapshot reports whether servers show snapshots in directories of this name.
func IsSnapshot(name []byte) bool {
	switch string(name) {
	case ".snapshot", "~snapshot", ".zfs", ".ckpt":
		return true
	}
	return false
}

// fits reports whether what is asked of files holds.
func (f *Filter) fits(a *vfs.Attr) bool {
	if f.o.FilesAlone && a.Type != vfs.TypeReg && a.Type != vfs.TypeDir {
		return false
	}
	return a.Type != vfs.TypeReg ||
		(f.o.Newer.IsZero() || a.Mtime.After(f.o.Newer)) &&
			(f.o.MinSize == nil || a.Size >= *f.o.MinSize) && (f.o.MaxSize == nil || a.Size <= *f.o.MaxSize)
}

// allows is what the first rule says that matches.
func (f *Filter) allows(d *dir, name []byte, isDir bool) bool {
	var buf [maxPattern/64 + 1]uint64
	for i := range f.rules {
		r := &f.rules[i]
		s := buf[:r.words]
		if r.path {
			copy(s, d.states[r.state:])
		} else {
			r.begin(s)
		}
		if r.matches(s, name, isDir) {
			return r.include
		}
	}
	return true
}

// descend is what is known of a directory in d.
func (f *Filter) descend(d *dir, name string, listed part) *dir {
	below := &dir{list: listed, states: append([]uint64(nil), d.states...)}
	at := 0
	for _, p := range f.path {
		p.descend(below.states[at:at+p.words], name)
		at += p.words
	}
	return below
}

// Through reports whether a directory is only on the way to what was chosen, by what Choose has returned for it; nil is
// the top.
func (f *Filter) Through(chosen any) bool {
	d := f.top
	if chosen != nil {
		d = chosen.(*dir)
	}
	return f.o.List != nil && !d.list.whole || f.o.FilesAlone
}

// Allows reports whether rules, sizes and times choose an object by itself, as if it lay at the top.
func (f *Filter) Allows(name string, a *vfs.Attr) bool {
	return f.fits(a) && f.allows(f.top, []byte(name), a.Type == vfs.TypeDir)
}

// LeftOut counts an entry that was not chosen.
func (f *Filter) LeftOut(e *vfs.Entry) {
	f.left.Add(1)
	if e.Attr.Type == vfs.TypeDir && f.isSnapshot(e.Name) {
		f.snapshots.Add(1)
	}
}

// Left is how many entries LeftOut has counted, and how many of them were directories of snapshots.
func (f *Filter) Left() (entries, snapshots uint64) {
	if f == nil {
		return 0, 0
	}
	return f.left.Load(), f.snapshots.Load()
}

// Missing are the paths of the list that were not met.
func (f *Filter) Missing() func(func(string) bool) {
	if f == nil {
		return (*List)(nil).Missing()
	}
	return f.o.List.Missing()
}
