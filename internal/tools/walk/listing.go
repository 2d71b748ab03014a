package walk

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"slices"

	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// maxRestarts bounds how often one listing begins again after a bad cookie.
	maxRestarts = 3
	// maxRemembered bounds the names whose hashes are kept for a restart: 512
	// KiB for a directory. Beyond it none are kept, and a bad cookie is
	// ErrRestart.
	maxRemembered = 1 << 16
	// maxSameCookie is how many entries in a row may carry one cookie. Servers
	// whose cookies are hashes of names have a few such collisions; more is
	// ErrStuck.
	maxSameCookie = 64
	// maxSameName is how often one name may come again. In a directory that is in use a name
	// may come twice; more is ErrStuck.
	maxSameName = 64
)

// needed are the attributes that every entry must have. An entry without one of them is
// asked for again.
const needed = vfs.MaskType | vfs.MaskMode | vfs.MaskNlink | vfs.MaskUID | vfs.MaskGID | vfs.MaskSize |
	vfs.MaskFileID | vfs.MaskFSID | vfs.MaskMtime | vfs.MaskCtime

// wanted is what a listing asks for.
const wanted = vfs.MaskV3 | vfs.MaskHandle

// listing is how far a directory has been listed. It outlasts suspensions.
type listing struct {
	pos      vfs.Pos
	restarts int

	// Brent's cycle search: mark is a position that was passed. It is moved up after 1,
	// 2, 4, ... entries.
	mark  vfs.Pos
	steps uint64
	until uint64
	same  int // entries in a row with the cookie pos
	names nameCycle

	seen  []uint64 // hashes of names visited since the last restart
	known []uint64 // of those before it; ascending
	full  bool     // there were more than maxRemembered
}

// advance records the position after an entry.
func (l *listing) advance(next vfs.Pos) error {
	if next == l.pos {
		if l.same++; l.same > maxSameCookie {
			return ErrStuck
		}
		return nil
	}
	l.pos, l.same = next, 0
	if l.steps > 0 && next == l.mark {
		return ErrStuck
	}
	if l.steps++; l.steps > l.until {
		l.mark, l.until = next, 2*l.steps
	}
	return nil
}

// nameCycle notices a listing that gives the same names again and again, under new cookies.
// It remembers one name, which is replaced after 1, 2, 4, ... entries (Brent's cycle search).
// So names that repeat after n entries are noticed within about maxSameName*n entries.
type nameCycle struct {
	mark  uint64 // hash of the name
	steps uint64
	until uint64
	met   int // how often it has come again
}

// add records a name by its hash.
func (c *nameCycle) add(hash uint64) error {
	if c.steps > 0 && hash == c.mark {
		if c.met++; c.met > maxSameName {
			return fmt.Errorf("%w: it has one name more than %d times", ErrStuck, maxSameName)
		}
	}
	if c.steps++; c.steps > c.until {
		c.mark, c.until, c.met = hash, 2*c.steps, 0
	}
	return nil
}

// List is f.ReadDir of the whole directory dir. A listing that gives the same names again and
// again ends with ErrStuck.
func List(ctx context.Context, f vfs.FS, dir vfs.Handle, want vfs.Mask) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		seed, names := maphash.MakeSeed(), nameCycle{}
		for e, err := range f.ReadDir(ctx, dir, vfs.Pos{}, want, 0) {
			if err == nil {
				err = names.add(maphash.Bytes(seed, e.Name))
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// isNew remembers a name by its hash and reports whether it has to be visited.
func (l *listing) isNew(hash uint64) bool {
	if l.full {
		return true
	}
	if _, found := slices.BinarySearch(l.known, hash); found {
		return false
	}
	if len(l.seen)+len(l.known) >= maxRemembered {
		l.full, l.seen, l.known = true, nil, nil
		return true
	}
	l.seen = append(l.seen, hash)
	return true
}

func (l *listing) restart() error {
	if l.restarts++; l.restarts > maxRestarts {
		return fmt.Errorf("%w: %d attempts", ErrRestart, maxRestarts)
	}
	if l.full {
		return fmt.Errorf("%w: more than %d entries had been visited", ErrRestart, maxRemembered)
	}
	*l = listing{restarts: l.restarts, known: append(l.known, l.seen...)}
	slices.Sort(l.known)
	return nil
}

// errFull suspends a listing because the directory may queue no more children.
var errFull = errors.New("suspend the listing")

// fatal marks an error of the visitor, which ends the walk.
type fatal struct{ error }

// list reports d's entries from the position of its listing. It returns true if the listing
// was suspended, and an error if the walk has to end.
func (w *walker) list(d *Dir) (suspended bool, err error) {
	for {
		err := w.read(d)
		if err == errFull { //nolint:errorlint // never wrapped
			if w.suspend(d) {
				return true, nil
			}
			continue
		}
		if errors.Is(err, vfs.ErrBadCookie) {
			if err = d.listing.restart(); err == nil {
				err = w.same(d)
			}
			if err == nil {
				continue
			}
		}
		if f, ok := errors.AsType[fatal](err); ok {
			return false, f.error
		}
		if cerr := w.ctx.Err(); cerr != nil {
			return false, cerr
		}
		if err != nil && movedOn(err) && d.Parent != nil {
			if err = w.lookAgain(d, err); err == nil && d.Elsewhere() {
				return false, w.pass(d)
			} else if err == nil && !d.skipped {
				continue
			}
		}
		d.listing = listing{}
		if err != nil {
			return false, w.listFault(d, err)
		}
		if d.skipped || w.o.Again == nil {
			return false, nil
		}
		if d.again, err = w.o.Again(w.ctx, d); !d.again || err != nil {
			return false, err
		}
	}
}

// listFault reports that the listing of d ended with err. A directory that vanished before it
// was announced is a fault of its parent. An error ends the walk.
func (w *walker) listFault(d *Dir, err error) error {
	if f, ok := errors.AsType[fatal](err); ok {
		return f.error
	}
	if cerr := w.ctx.Err(); cerr != nil {
		return cerr
	}
	err = fmt.Errorf("list: %w", err)
	if !d.entered && errors.Is(err, ErrVanished) {
		d.skipped = true
		return w.v.Fault(w.ctx, d.Parent, d.Name, err)
	}
	if err := w.enter(d); err != nil || d.skipped {
		return err
	}
	d.note(err)
	return w.v.Fault(w.ctx, d, "", err)
}

// read iterates over d until the listing ends, fails or has to be suspended. It calls Enter
// once the listing has begun.
func (w *walker) read(d *Dir) error {
	for e, err := range w.entries(d) {
		if err != nil {
			return err
		}
		if err := w.enter(d); err != nil {
			return fatal{err}
		}
		if d.skipped {
			return nil
		}
		if err := d.listing.advance(e.Next); err != nil {
			return err
		}
		hash := maphash.Bytes(w.seed, e.Name)
		if err := d.listing.names.add(hash); err != nil {
			return err
		}
		if w.o.Wants != nil && !w.o.Wants(d, e.Name) || !d.listing.isNew(hash) {
			continue
		}
		full, err := w.entry(d, e)
		if err != nil {
			return fatal{err}
		}
		if full {
			return errFull
		}
	}
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if err := w.enter(d); err != nil {
		return fatal{err}
	}
	return nil
}

// entry visits one entry of d and reports whether d's queue is full. An error
// ends the walk.
func (w *walker) entry(d *Dir, e *vfs.Entry) (full bool, err error) {
	if err := Check(e); err != nil {
		d.note(err)
		return false, w.v.Fault(w.ctx, d, string(e.Name[:min(len(e.Name), vfs.MaxName)]), err)
	}
	if e.Handle.IsZero() || !e.Attr.Has(needed) {
		own := *e
		if err := w.complete(d, &own); err != nil {
			if cerr := w.ctx.Err(); cerr != nil {
				return false, cerr
			}
			if !errors.Is(err, ErrVanished) { // what vanished is not missing
				d.note(err)
			}
			return false, w.v.Fault(w.ctx, d, string(e.Name), err)
		}
		e = &own
	}
	chosen, ok := w.o.choose(d.Chosen, e)
	if !ok {
		if w.o.LeftOut != nil {
			w.o.LeftOut(d, e)
		}
		return false, nil
	}
	if e.Attr.Type != vfs.TypeDir {
		return false, w.v.Entry(w.ctx, d, e)
	}
	child := &Dir{Parent: d, Name: string(e.Name), Handle: e.Handle, Attr: e.Attr, Chosen: chosen, w: w, depth: d.depth + 1}
	if w.o.Descend != nil && !w.o.Descend(child) {
		return false, nil
	}
	child.preview, d.below = d.below, nil
	return w.push(child), nil
}

// choose is Choose, if there is one.
func (o *Options) choose(in any, e *vfs.Entry) (below any, ok bool) {
	if o.Choose == nil {
		return nil, true
	}
	return o.Choose(in, e)
}

// Check is CheckName of an entry's name, with what the file system says of it.
func Check(e *vfs.Entry) error {
	err := CheckName(e.Name)
	if err != nil && e.Foreign != "" {
		return &foreign{fmt.Sprintf("%v: %s", ErrName, e.Foreign), err}
	}
	return err
}

// foreign is an ErrName in the file system's words.
type foreign struct {
	text string
	is   error
}

func (e *foreign) Error() string   { return e.text }
func (e *foreign) Unwrap() []error { return []error{ErrName, e.is} }

// CheckName is vfs.CheckName for a name that a peer sent in a listing, with the name
// bounded before it becomes a string.
func CheckName(name []byte) error {
	if len(name) > vfs.MaxName {
		return fmt.Errorf("name of %d bytes in a listing: %w", len(name), vfs.ErrNameTooLong)
	}
	if err := vfs.CheckName(string(name)); err != nil {
		return fmt.Errorf("%w: %w", ErrName, err)
	}
	return nil
}

// complete asks for what the peer left out of e. If e's handle is stale, the name is looked
// up again, and e becomes the object that has it now.
func (w *walker) complete(d *Dir, e *vfs.Entry) error {
	if !e.Handle.IsZero() {
		err := w.attributes(e)
		if err == nil || !movedOn(err) {
			return err
		}
	}
	h, attr, _, err := w.fs.Lookup(w.ctx, d.Handle, string(e.Name))
	if errors.Is(err, vfs.ErrNoEnt) {
		return fmt.Errorf("%w: %w", ErrVanished, err)
	}
	if err != nil {
		return fmt.Errorf("lookup: %w", err)
	}
	e.Handle, e.Attr = h, attr
	return w.attributes(e)
}

// attributes asks for e's attributes if some are missing.
func (w *walker) attributes(e *vfs.Entry) error {
	if e.Attr.Has(needed) {
		return nil
	}
	attr, err := w.fs.GetAttr(w.ctx, e.Handle, vfs.MaskV3)
	if err != nil {
		return fmt.Errorf("getattr: %w", err)
	}
	if !attr.Has(vfs.MaskType) {
		return fmt.Errorf("getattr: the peer sent no type: %w", vfs.ErrServerFault)
	}
	e.Attr = attr
	return nil
}
