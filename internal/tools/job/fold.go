package job

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// A destination may take two names of the source for one: names that differ in case, or in
// how Unicode composes a letter (APFS, NTFS, ext4 with casefold). The second copy would
// silently replace the first. What servers say of it in PATHCONF is often not true, so a
// probe tries it out in the tree's root, before something is made there. Directories that the job makes behave like their
// parent. One that was there before need not: it may be a mount, or have a flag of its own.
// It is tried out as soon as two names in it may be one; most directories have no such names.
//
// Where names are folded, nothing is made under a name that leads to an object which this
// run has made under another name.

// maxMade is how many names of a folding directory are remembered, about 100 bytes each.
// At the bound, every further name that leads to an unknown object is refused.
const maxMade = 1 << 20

// foldStripes is how many ASCII names of a folding directory can be made concurrently at
// most. Other names are made one at a time.
const foldStripes = 64

// errFolded says that the name would replace an object of another name.
var errFolded = errors.New("the destination takes this name and that of another object of the source for one; it would replace that")

// folds says which names a directory takes for one: those that differ in case, or in
// Unicode's form.
type folds struct{ cases, forms bool }

func (f folds) any() bool { return f.cases || f.forms }

// maxEarly is how many names of a directory are remembered before it is tried out, about 100
// bytes each. At the bound it is tried out.
const maxEarly = 1 << 14

// Made remembers what copies have made in one directory, so that no copy replaces what
// another has made there. The zero Made is ready. One job at a time may
// use it; the job's workers share it.
type Made struct {
	tried atomic.Bool // folds is known, and does not change any more
	folds folds
	seed  maphash.Seed

	// all is held by each name that is being made in a directory that folds names, or that
	// was not tried out. It is write-locked for a name that is not ASCII, and for the probe.
	all     sync.RWMutex
	stripes [foldStripes]sync.Mutex

	mu    sync.Mutex
	early map[string]string   // until the directory is tried out: the names made, by their lower case
	ids   map[uint64][]string // by file id: the names under which this run made the object
	n     int                 // of all names
}

// madeIn returns the Made of a directory that was created in m's: it folds names alike.
func (m *Made) madeIn() *Made {
	if !m.tried.Load() {
		return new(Made)
	}
	if !m.folds.any() {
		return m
	}
	in := new(Made)
	in.know(m.folds)
	return in
}

// know ends the time in which m was not tried out.
func (m *Made) know(f folds) {
	if f.any() {
		m.seed, m.ids = maphash.MakeSeed(), make(map[uint64][]string)
	}
	m.folds = f
	m.tried.Store(true)
}

// tryOut finds out whether dir, whose path is for messages, folds names, unless m knows. It
// waits for the names that are being made there.
func (j *copyJob) tryOut(ctx context.Context, m *Made, dir vfs.Handle, path string) error {
	m.all.Lock()
	defer m.all.Unlock()
	if m.tried.Load() {
		return nil
	}
	f, err := j.probe(ctx, dir, path)
	if err != nil {
		return err
	}
	ids := make(map[string]uint64)
	if f.any() {
		for _, name := range m.early {
			o, there, err := lookup(ctx, j.o.Dest.FS, dir, name)
			if err != nil {
				return fmt.Errorf("lookup of %q: %w", name, err)
			}
			if there {
				ids[name] = o.attr.FileID
			}
		}
	}
	m.know(f)
	m.early = nil
	for name, id := range ids {
		m.add(id, name)
	}
	return nil
}

// makeEarly lets a name be made in a directory that was not tried out, unless the directory
// may take it for a name that was made. end releases it.
func (m *Made) makeEarly(name string) (end func(made bool), ok bool) {
	m.all.RLock()
	lower := strings.ToLower(name)
	m.mu.Lock()
	defer m.mu.Unlock()
	was, taken := m.early[lower]
	if m.tried.Load() || !isASCII(name) || taken && was != name || len(m.early) >= maxEarly {
		m.all.RUnlock()
		return nil, false
	}
	if m.early == nil {
		m.early = make(map[string]string)
	}
	m.early[lower] = name
	return func(made bool) {
		if !made && !taken {
			m.mu.Lock()
			delete(m.early, lower)
			m.mu.Unlock()
		}
		m.all.RUnlock()
	}, true
}

// The end of the probe's name: one letter, composed and decomposed.
const (
	composed   = "\u00e9"
	decomposed = "e\u0301"
)

// probe creates a name in dir, and looks up its upper case and its decomposed form.
func (j *copyJob) probe(ctx context.Context, dir vfs.Handle, path string) (found folds, err error) {
	temp, err := j.t.TempName()
	if err != nil {
		return found, err
	}
	f, dst := j.o.Dest.FS, transfer.Target{FS: j.o.Dest.FS, Dir: dir}
	how := vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}}
	end := composed
	_, _, err = transfer.CreateTemp(ctx, &dst, temp+end, &how)
	if errors.Is(err, vfs.ErrInval) {
		end = "" // such letters are refused, so forms cannot be folded
		_, _, err = transfer.CreateTemp(ctx, &dst, temp, &how)
	}
	if err != nil && !errors.Is(err, vfs.ErrUnknownOutcome) {
		if cannotMake(err) {
			return found, nil // nothing else can be made there, either
		}
		return found, fmt.Errorf("make a temporary in the destination: %w", err)
	}
	silent := err // the first call without an answer: nothing more is found out then
	for _, try := range [...]struct {
		name  string
		found *bool
	}{{strings.ToUpper(temp) + end, &found.cases}, {temp + decomposed, &found.forms}} {
		if !errors.Is(silent, vfs.ErrNoAnswer) {
			_, _, _, silent = f.Lookup(ctx, dir, try.name)
			*try.found = silent == nil
		}
	}
	rerr := transfer.RemoveTemp(ctx, &dst, temp+end, err)
	if rerr != nil && !errors.Is(rerr, vfs.ErrNoAnswer) {
		// A second try: the job should not fail because of the probe alone.
		rerr = transfer.RemoveTemp(ctx, &dst, temp+end, err)
	}
	if left, ok := errors.AsType[*transfer.LeftError](rerr); ok {
		// Counted here, where its path is known. The error does not name it again.
		j.left.add(path, left.Names)
		rerr = fmt.Errorf("remove the temporary %s: %w", left.Names[0], left.Err)
	}
	switch {
	case errors.Is(silent, vfs.ErrNoAnswer):
		return found, fmt.Errorf("try out the destination with a temporary: %w", silent)
	case rerr != nil:
		return found, rerr
	}
	return found, ctx.Err()
}

// isOurTemp reports whether name is that of a temporary or a probe of this job.
func isOurTemp(name, tag string) bool {
	return transfer.IsTemp(strings.TrimSuffix(strings.TrimSuffix(name, composed), decomposed), tag)
}

// beginName ensures that making name in the directory replaces nothing that this run has
// made. The caller makes the object, then calls end, which releases the name's lock.
func (j *copyJob) beginName(ctx context.Context, s *dirState, name string) (end func(made bool), err error) {
	m := s.made
	if !m.tried.Load() {
		if !s.isRoot() {
			if end, ok := m.makeEarly(name); ok {
				return end, nil
			}
		}
		if err := j.tryOut(ctx, m, s.handle, s.dirPath("")); err != nil {
			return nil, err
		}
	}
	if !m.folds.any() {
		return func(bool) {}, nil
	}
	unlock := m.lock(name)
	o, there, err := lookup(ctx, j.o.Dest.FS, s.handle, name)
	if err == nil && there && m.clashes(o.attr.FileID, name) {
		err = errFolded
	}
	if err != nil {
		unlock()
		return nil, err
	}
	return func(made bool) {
		defer unlock()
		if !made {
			return
		}
		if o, there, err := lookup(ctx, j.o.Dest.FS, s.handle, name); err == nil && there {
			m.add(o.attr.FileID, name)
		}
	}, nil
}

// spare returns an error if name leads to what this run has made under another one. The names
// that were made in the first walk are not kept. So where names are folded, one that leads to
// something is looked for in the listing, and refused if it is not there in this form.
func (j *copyJob) spare(ctx context.Context, s *dirState, name string) error {
	_, there, err := lookup(ctx, j.o.Dest.FS, s.handle, name)
	if err == nil && there {
		err = j.tryOut(ctx, s.made, s.handle, s.dirPath(""))
	}
	if err != nil || !there || !s.made.folds.any() {
		return err
	}
	for e, err := range walk.List(ctx, j.o.Dest.FS, s.handle, 0) {
		if err != nil || string(e.Name) == name {
			return err
		}
	}
	return errFolded
}

// lock excludes all names that the directory may take for this one.
func (m *Made) lock(name string) (unlock func()) {
	if !isASCII(name) {
		m.all.Lock()
		return m.all.Unlock
	}
	m.all.RLock()
	stripe := &m.stripes[maphash.String(m.seed, strings.ToLower(name))%foldStripes]
	stripe.Lock()
	return func() {
		stripe.Unlock()
		m.all.RUnlock()
	}
}

// clashes reports whether this run made the object id under another name that the directory
// may take for name. At the bound (maxMade) it says so of
// every name that it does not know.
func (m *Made) clashes(id uint64, name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, other := range m.ids[id] {
		if other != name && m.folds.mayBeOne(other, name) {
			return true
		}
	}
	return m.n >= maxMade && !slices.Contains(m.ids[id], name)
}

func (m *Made) add(id uint64, name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.n < maxMade && !slices.Contains(m.ids[id], name) {
		m.ids[id] = append(m.ids[id], name)
		m.n++
	}
}

// mayBeOne reports whether the directory may take two names of one object for one. Two names
// that it tells apart are hard links, such as those of an earlier run.
func (f folds) mayBeOne(a, b string) bool {
	return !isASCII(a) || !isASCII(b) || f.cases && strings.EqualFold(a, b)
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}
