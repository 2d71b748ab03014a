package files

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// whose says what has a name.
type whose int

const (
	nobodys whose = iota // there is none
	ours                 // the object that was to get it
	others
)

// publish gives t its name, and makes that stable. Once t may have its name, the end of ctx does
// not stop it.
func (t *temp) publish(ctx context.Context, name string, ifAbsent bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	do := t.rename
	if ifAbsent {
		do = t.link
	}
	if err := do(ctx, name); err != nil {
		return err
	}
	if err := t.s.sync(context.WithoutCancel(ctx), t.in); err != nil {
		return fmt.Errorf("%w: %w", object.ErrUnknownOutcome, err)
	}
	return nil
}

// link gives t its name, if nothing has it.
func (t *temp) link(ctx context.Context, name string) error {
	var err error
	for range maxTries {
		var a vfs.Attr
		a, _, err = t.s.fs.Link(ctx, t.h, t.in.h, name)
		if err == nil {
			if a.Has(vfs.MaskMtime) {
				t.attr = a
			}
			return nil
		}
		if !unsure(err) && !errors.Is(err, vfs.ErrExist) {
			if errors.Is(err, vfs.ErrNotSupp) {
				return fmt.Errorf("this file system has no hard links, which a store needs: %w", err)
			}
			return fail("link", err)
		}
		who, lookErr := t.look(ctx, name)
		switch {
		case lookErr != nil:
			return fmt.Errorf("%w: %w: %w", object.ErrUnknownOutcome, fail("link", err), lookErr)
		case who == ours:
			return nil
		case who == others:
			return object.ErrExist
		case ctx.Err() != nil: // it was not made, and cannot be once the temporary has gone
			return fail("link", err)
		}
	}
	return fail("link", err)
}

// rename gives t its name, whatever had it.
func (t *temp) rename(ctx context.Context, name string) error {
	var err error
	for range maxTries {
		err = t.in.gate.alone(ctx, func() error {
			_, _, err := t.s.fs.Rename(ctx, t.in.h, t.name, t.in.h, name)
			return err
		})
		if err == nil {
			t.name = ""
			return nil
		}
		if !unsure(err) {
			break
		}
		who, lookErr := t.look(ctx, name)
		switch {
		case lookErr == nil && who == ours:
			t.name = ""
			return nil
		case lookErr == nil:
			who, lookErr = t.look(ctx, t.name)
		}
		if lookErr != nil || who != ours { // also if another has replaced it already
			return errors.Join(object.ErrUnknownOutcome, fail("rename", err), lookErr)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if unsure(err) { // a call on its way may still be executed
		return errors.Join(object.ErrUnknownOutcome, fail("rename", err))
	}
	return fail("rename", err)
}

// look finds out whether name is t's. If it is another one's, that is stable.
func (t *temp) look(ctx context.Context, name string) (whose, error) {
	ctx, cancel := lasting(ctx)
	defer cancel()
	s := t.s
	h, a, err := s.lookup(ctx, t.in, name)
	switch {
	case errors.Is(err, vfs.ErrNoEnt):
		return nobodys, nil
	case err != nil:
		return nobodys, err
	case h == t.h:
		return ours, nil
	}
	// Two handles may be one object's (RFC 1813, section 2.6).
	if !t.attr.Has(vfs.MaskFSID | vfs.MaskFileID) {
		if t.attr, err = s.looks.GetAttr(ctx, t.h, looked); err != nil {
			return nobodys, fail("getattr", err)
		}
	}
	if a.FSID == t.attr.FSID && a.FileID == t.attr.FileID {
		return ours, nil
	}
	return others, s.settleName(ctx, t.in, &a)
}
