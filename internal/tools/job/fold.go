package job

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

// A destination may take two names of the source for one: those that differ in case, or
// in how Unicode composes a letter (APFS, NTFS, ext4 with casefold). Then the second
// would replace the first, and nobody would know. What a server says of that in PATHCONF
// is often not true, so it is tried out: once in the tree's root, and in directories
// that were there before; those that the job makes are like the ones they are made in.
//
// Where it is so, nothing is made under a name that leads to an object which this run has
// made under another.

// maxMade is how many names of a directory that folds names are kept track of, about 100
// bytes each. Beyond it every further name that leads to something is taken for one of them.
const maxMade = 1 << 20

// foldStripes is how many names of such a directory can be worked at together, if they
// are in ASCII; others are worked at alone.
const foldStripes = 64

// errFolded says why an object is not made.
var errFolded = errors.New("the destination takes this name and that of another object of the source for one; it would replace that")

// folds says which names a directory takes for one: that differ in case, or in form.
type folds struct{ cases, forms bool }

func (f folds) any() bool { return f.cases || f.forms }

// Made knows what copies have made in one directory, so that none of them replaces what
// another one has made there. The zero Made is ready; it serves one copy at a time.
type Made struct {
	tried bool
	folds folds
	seed  maphash.Seed

	all     sync.RWMutex // names that are not in ASCII take it alone
	stripes [foldStripes]sync.Mutex

	mu  sync.Mutex
	ids map[uint64][]string // by file id: the names that were made
	n   int                 // of all names
}

// madeIn is the Made of a directory that was made in one with this.
func (m *Made) madeIn() *Made {
	if m == nil || !m.tried {
		return nil
	}
	if !m.folds.any() {
		return m
	}
	return newMade(m.folds)
}

func newMade(f folds) *Made {
	m := &Made{tried: true, folds: f}
	if f.any() {
		m.seed, m.ids = maphash.MakeSeed(), make(map[uint64][]string)
	}
	return m
}

// tryOut finds out whether dir, which has this path, folds names, unless m knows.
func (j *copyJob) tryOut(ctx context.Context, m *Made, dir vfs.Handle, path string) (*Made, error) {
	if m != nil && m.tried {
		return m, nil
	}
	f, err := j.probe(ctx, dir)
	if left, ok := errors.AsType[*transfer.LeftError](err); ok {
		// Told of here, where its directory is known, and not once more above.
		j.left.add(path, left.Names)
		err = fmt.Errorf("remove the temporary %s: %w", left.Names[0], left.Err)
	}
	if err != nil {
		return nil, err
	}
	fresh := newMade(f)
	if m == nil {
		return fresh, nil
	}
	m.tried, m.folds, m.seed, m.ids = true, fresh.folds, fresh.seed, fresh.ids
	return m, nil
}

// The end of the probe's name, composed and decomposed.
const (
	composed   = "\u00e9"
	decomposed = "e\u0301"
)

// probe makes a name in dir and looks for two others.
func (j *copyJob) probe(ctx context.Context, dir vfs.Handle) (found folds, err error) {
	temp, err := j.t.TempName()
	if err != nil {
		return found, err
	}
	f, dst := j.o.Dest.FS, transfer.Target{FS: j.o.Dest.FS, Dir: dir}
	how := vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}}
	end := composed
	_, _, err = transfer.CreateTemp(ctx, &dst, temp+end, &how)
	if errors.Is(err, vfs.ErrInval) {
		end = "" // it takes no such letter, and so there is nothing to compose
		_, _, err = transfer.CreateTemp(ctx, &dst, temp, &how)
	}
	if err != nil && !errors.Is(err, vfs.ErrUnknownOutcome) {
		if cannotMake(err) {
			return found, nil // nor will anything else be made there
		}
		return found, fmt.Errorf("make a temporary in the destination: %w", err)
	}
	_, _, _, cerr := f.Lookup(ctx, dir, strings.ToUpper(temp)+end)
	_, _, _, ferr := f.Lookup(ctx, dir, temp+decomposed)
	found = folds{cases: cerr == nil, forms: ferr == nil}
	rerr := transfer.RemoveTemp(ctx, &dst, temp+end, err)
	if rerr != nil {
		// For want of nothing but this a job should not fail.
		rerr = transfer.RemoveTemp(ctx, &dst, temp+end, err)
	}
	if rerr != nil {
		return found, rerr
	}
	return found, ctx.Err()
}

// isOurTemp reports whether name is one that this job gives to temporaries, or probes
// with.
func isOurTemp(name, tag string) bool {
	return transfer.IsTemp(strings.TrimSuffix(strings.TrimSuffix(name, composed), decomposed), tag)
}

// beginName makes sure that name can be made in the directory without replacing what this
// run has made. The caller makes it, and calls end.
func (j *copyJob) beginName(ctx context.Context, s *dirState, name string) (end func(made bool), err error) {
	m := s.made
	if m == nil || !m.folds.any() {
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

// lock keeps names away that the directory may take for this one.
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

// clashes reports whether the object that name leads to was made in this run for
// another name.
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

// mayBeOne reports whether two names may be taken for one. Hard links of an earlier run
// have an object in common, and are two names all the same.
func (f folds) mayBeOne(a, b string) bool {
	return !isASCII(a) || !isASCII(b) || f.cases && strings.EqualFold(a, b)
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= 0x80 })
}
