package place

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/internal/base/near"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/vfs"
)

// ofSnapshot divides what a user types from the snapshot in it.
const ofSnapshot = "::"

// DivideText divides STORE::NAME[@ID][/PATH] at the first "::" behind which a name and, if anything, a slash follow, whatever is
// there: the address of a host may have another "::".
func DivideText(arg string) (store, name, path string, ok bool) {
	for at := 0; ; at++ {
		next := strings.Index(arg[at:], ofSnapshot)
		if next < 0 {
			return "", "", "", false
		}
		at += next
		name, path, _ = strings.Cut(arg[at+len(ofSnapshot):], "/")
		if at > 0 && name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-@") == "" {
			return arg[:at], name, path, true
		}
	}
}

// Divide divides STORE::NAME[@ID][/PATH], the place of a snapshot: name is NAME[@ID]. ok is false for what is none, and where this host has
// what arg names, or no directory that STORE names. In a URL its arguments belong to STORE; a path of a server that has "::" is
// not found out to be none before [Open].
func Divide(arg string) (store, name, path string, ok bool) {
	store, name, path, ok = DivideText(arg)
	if !ok || IsURL(arg) {
		return store, name, path, ok
	}
	if exists(arg) {
		return "", "", "", false
	}
	if _, _, there := remote(store, false); there && !exists(store) {
		return store, name, path, true
	}
	info, err := os.Stat(store)
	return store, name, path, err == nil && info.IsDir()
}

// errPlain says that an argument is no place of a snapshot after all.
var errPlain = errors.New("the place of no snapshot")

// plainError is errPlain of an argument that could have been one, and why it is none.
type plainError struct{ why error }

func (e *plainError) Error() string        { return e.why.Error() }
func (e *plainError) Is(target error) bool { return target == errPlain }

// openDivided opens the snapshot that arg names. It is errPlain if arg names none.
func openDivided(ctx context.Context, arg string, o Options) (*Place, error) {
	store, name, path, ok := Divide(arg)
	if !ok {
		return nil, errPlain
	}
	s, err := OpenStore(ctx, store, StoreOptions{Reading: o.Reading, Dial: o.Dial, Silent: o.Silent})
	if strings.HasPrefix(arg, "nfs://") && (errors.Is(err, ErrUsage) || errors.Is(err, ErrNoStore)) {
		return nil, &plainError{err}
	}
	if err != nil {
		return nil, err
	}
	p := &Place{Path: strings.Trim(path, "/"), Text: arg, store: s}
	if o.Change {
		err = fmt.Errorf("%s is %w that can be changed: a snapshot is read-only", arg, ErrUsage)
	} else {
		err = p.openSnapshot(ctx, name, o.Note)
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return p, nil
}

// orSnapshot is what openNFS has returned for arg, or if nothing is there the snapshot that it names.
func orSnapshot(ctx context.Context, arg string, o Options, p *Place, err error) (*Place, error) {
	if _, _, _, ok := Divide(arg); !ok || ctx.Err() != nil {
		return p, err
	}
	_, unlisted := errors.AsType[*NoExport](err)
	_, answered := vfs.StatusOf(err)
	if p != nil {
		_, err := p.nfs.Found()
		answered = errors.Is(err, fs.ErrNotExist)
	}
	if !answered && !unlisted && !errors.Is(err, ErrUsage) {
		return p, err
	}
	of, serr := openDivided(ctx, arg, o)
	switch plain, is := errors.AsType[*plainError](serr); {
	case is && errors.Is(err, ErrUsage): // a URL whose arguments are those of a store
		return nil, plain.why
	case is:
		return p, err
	case p == nil:
		return of, serr
	default:
		return of, errors.Join(serr, p.Close())
	}
}

// openSnapshot opens the snapshot of a place.
func (p *Place) openSnapshot(ctx context.Context, name string, note func(string)) error {
	ref, err := p.store.Find(ctx, name)
	if err != nil {
		return err
	}
	p.snap, err = snapshot.Open(ctx, p.store, ref)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Text, err)
	}
	p.FS = p.snap.FS()
	if !ref.Complete && note != nil {
		note(ref.Text() + " is incomplete: what could not be read when it was taken is not in it")
	}
	return nil
}

// Find finds the snapshot NAME[@ID] of the store; see [snapshot.Find]. The error is ErrUsage, with what there is, if there is none.
func (s *Store) Find(ctx context.Context, name string) (snapshot.Ref, error) {
	ref, err := snapshot.Find(ctx, s, name)
	if err != nil {
		err = snapshotError(ctx, s, name, err)
	}
	return ref, err
}

// maxSnapshots bounds how many roots are listed to say which snapshots there are.
const maxSnapshots = 10_000

// snapshotError is the error of a snapshot that was not found, with what there is.
func snapshotError(ctx context.Context, s *Store, name string, err error) error {
	if only, ok := errors.AsType[*snapshot.IncompleteError](err); ok {
		text := s.Text + ofSnapshot
		return usageError{fmt.Errorf("%s%w; give %s%s to have that", text, err, text, only.Newest)}
	}
	// What is damaged may have an ErrName in it: of a root that has the name of another.
	if errors.Is(err, snapshot.ErrDamaged) || !errors.Is(err, snapshot.ErrName) && !errors.Is(err, snapshot.ErrNoSnapshot) {
		return fmt.Errorf("%s%s%s: %w", s.Text, ofSnapshot, name, err)
	}
	err = fmt.Errorf("%s%s%w", s.Text, ofSnapshot, err)
	if errors.Is(err, snapshot.ErrName) {
		return usageError{err}
	}
	names, lerr := s.Snapshots(ctx, "")
	base, _, _ := strings.Cut(name, "@")
	switch meant := near.Of(base, slices.Values(names)); {
	case lerr != nil:
	case len(names) == 0:
		err = fmt.Errorf("%w; the store has none", err)
	case slices.Contains(names, base):
		err = fmt.Errorf("%w; nfsbox snapshots ls lists those of that name", err)
	case meant != "":
		err = fmt.Errorf("%w, did you mean %s?", err, meant)
	default:
		text := strings.Join(names[:min(len(names), maxNamed)], ", ")
		if more := len(names) - maxNamed; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		err = fmt.Errorf("%w; the store has %s", err, text)
	}
	return usageError{err}
}

// Snapshots returns the names, sorted, that snapshots of the store have and that begin with begun; with "@" in it NAME@ID of those that
// begin so. Of more than 10,000 snapshots the first are looked at. No root is read.
func (s *Store) Snapshots(ctx context.Context, begun string) (names []string, err error) {
	prefix := "snapshots/" + strings.Replace(begun, "@", "/", 1)
	if object.CheckPrefix(prefix) != nil {
		return nil, nil
	}
	looked := 0
	for info, err := range object.All(ctx, s, prefix) {
		if err != nil {
			return names, err
		}
		if looked++; looked > maxSnapshots {
			break
		}
		name, id, _ := strings.Cut(strings.TrimPrefix(info.Key, "snapshots/"), "/")
		if strings.Contains(begun, "@") {
			name += "@" + id
		}
		if n := len(names); n == 0 || names[n-1] != name {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// Snapshot returns the snapshot that the place is in; ok is false for any other place.
func (p *Place) Snapshot() (s *snapshot.Snapshot, ok bool) { return p.snap, p.snap != nil }

// IsLocal reports whether the place is a path of this host.
func (p *Place) IsLocal() bool { return p.dir != "" }

// snapshotBase is Base of a place in a snapshot: NAME for the snapshot itself.
func (p *Place) snapshotBase() string {
	if base := path.Base(p.Path); base != "." && base != ".." {
		return base
	}
	ref := p.snap.Ref()
	return ref.Name
}
