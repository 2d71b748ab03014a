package transfer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nfsbox/nfsbox/vfs"
)

// extraFile is a File that knows, for less than its FS, whether it has extended attributes that
// a vfs.Xattrer lists, and whether it may have an access control list. It is found by vfs.As, and so is xattrFS.
type extraFile interface {
	Extras(ctx context.Context) (xattrs, list bool)
}

// xattrFS is an FS that knows it of all its objects.
type xattrFS interface {
	HasXattrs(ctx context.Context, h vfs.Handle) bool
}

// extras is HasXattrs of a source that is open as f, and whether it may have a list.
func (s *Source) extras(ctx context.Context, f vfs.File) (xattrs, list bool) {
	if x, ok := vfs.As[extraFile](f); ok {
		return x.Extras(ctx)
	}
	return s.HasXattrs(ctx), true
}

// HasXattrs reports whether the source has extended attributes, as far as it knows: NFSv3 has no
// question for them. If they cannot be read, it has some.
func (s *Source) HasXattrs(ctx context.Context) bool {
	if x, ok := vfs.As[xattrFS](s.FS); ok {
		return x.HasXattrs(ctx, s.Handle)
	}
	x, ok := vfs.As[vfs.Xattrer](s.FS)
	if !ok {
		return false
	}
	names, err := x.Xattrs(ctx, s.Handle)
	return len(names) > 0 || err != nil && !errors.Is(err, vfs.ErrNotSupp) && !errors.Is(err, vfs.ErrStale)
}

// xattrCapability are the capabilities that a file gives to whoever runs it (capabilities(7)).
// Another owner or other bytes take them away, so they come last.
const xattrCapability = "security.capability"

// marks gives the extended attributes of src to h, one after the other. So no more than one of
// them is in memory.
type marks struct {
	src  *Source
	f    vfs.FS
	h    vfs.Handle
	kept bool // h may have some of them already: what is the same stays

	set        bool // one was changed
	lost       bool // one could not be read, or not be set
	capability bool // there is one, which setUsers has left out
}

// setUsers gives h all but the capability. The caller must have the right to write to h, which
// the source's mode may take away.
func (m *marks) setUsers(ctx context.Context) error {
	from, ok := vfs.As[vfs.Xattrer](m.src.FS)
	if _, holds := vfs.As[vfs.Xattrer](m.f); !ok || !holds {
		m.lost = true
		return nil
	}
	names, err := from.Xattrs(ctx, m.src.Handle)
	if errors.Is(err, vfs.ErrNotSupp) {
		return nil // it cannot have any
	}
	if err != nil {
		return m.unread(ctx, err)
	}
	for _, name := range names {
		if name == xattrCapability {
			m.capability = true
		} else if err := m.one(ctx, from, name); err != nil {
			return err
		}
	}
	return nil
}

// setCapability gives h the capability, if there is one and h has the source's owner: another one
// could change what the file does with it.
func (m *marks) setCapability(ctx context.Context, owned bool) error {
	if !m.capability {
		return nil
	}
	if !owned {
		m.lost = true
		return nil
	}
	from, _ := vfs.As[vfs.Xattrer](m.src.FS)
	return m.one(ctx, from, xattrCapability)
}

// one gives h one attribute.
func (m *marks) one(ctx context.Context, from vfs.Xattrer, name string) error {
	to, _ := vfs.As[vfs.Xattrer](m.f)
	value, err := from.Xattr(ctx, m.src.Handle, name)
	if errors.Is(err, vfs.ErrNoXattr) {
		return nil // it is gone
	}
	if err != nil {
		return m.unread(ctx, err)
	}
	if m.kept {
		if was, err := to.Xattr(ctx, m.h, name); err == nil && bytes.Equal(was, value) {
			return nil
		}
	}
	switch err = to.SetXattr(ctx, m.h, name, value, vfs.XattrEither); {
	case err == nil:
		m.set = true
	case unfit(err):
		m.lost = true
	default:
		return frozen(fmt.Sprintf("set the extended attribute %q", name), err)
	}
	return nil
}

// unread is the error of a source whose attributes cannot be read. If it is there, they are lost.
func (m *marks) unread(ctx context.Context, err error) error {
	err = &sourceError{err: fmt.Errorf("extended attributes of the source: %w", err)}
	if movedOn(err) || ctx.Err() != nil || errors.Is(err, vfs.ErrNoAnswer) {
		return err
	}
	m.lost = true
	return nil
}

// KeepXattrs gives h, an object of the destination that is not being written, the extended attributes of the
// source. Others of h stay. owned says that h has the source's owner and shall have the
// capability, too. set says whether any was changed, lost whether h lacks one.
func (s *Source) KeepXattrs(ctx context.Context, f vfs.FS, h vfs.Handle, owned bool) (set, lost bool, err error) {
	m := marks{src: s, f: f, h: h, kept: true}
	if err = m.setUsers(ctx); err == nil {
		err = m.setCapability(ctx, owned)
	}
	if movedOn(err) {
		return m.set, true, nil // it cannot be asked any more
	}
	return m.set, m.lost, err
}

// known are the attributes that h has after a call: those that came back, else those before it.
func known(after, before *vfs.Attr) *vfs.Attr {
	if after.Has(vfs.MaskUID | vfs.MaskGID) {
		return after
	}
	return before
}

// DifferingXattrs are the names of the extended attributes of a that b does not have alike, and of those that b has
// besides, each sorted. If b cannot be asked, it has none; if a cannot, nothing is compared.
func DifferingXattrs(ctx context.Context, a, b *Source) (names, more []string, err error) {
	from, ok := vfs.As[vfs.Xattrer](a.FS)
	if !ok {
		return nil, nil, nil
	}
	to, _ := vfs.As[vfs.Xattrer](b.FS)
	in, err := namesOf(ctx, from, a.Handle)
	if err != nil {
		return nil, nil, &sourceError{err: fmt.Errorf("extended attributes of the source: %w", err)}
	}
	out, err := namesOf(ctx, to, b.Handle)
	if err != nil {
		return nil, nil, fmt.Errorf("extended attributes of the destination: %w", err)
	}
	slices.Sort(in)
	slices.Sort(out)
	for _, name := range out {
		if !slices.Contains(in, name) {
			more = append(more, name)
		}
	}
	for _, name := range in {
		if !slices.Contains(out, name) {
			names = append(names, name)
			continue
		}
		x, err := from.Xattr(ctx, a.Handle, name)
		if err != nil {
			return nil, nil, &sourceError{err: fmt.Errorf("extended attribute %q of the source: %w", name, err)}
		}
		y, err := to.Xattr(ctx, b.Handle, name)
		if err != nil {
			return nil, nil, fmt.Errorf("extended attribute %q of the destination: %w", name, err)
		}
		if !bytes.Equal(x, y) {
			names = append(names, name)
		}
	}
	return names, more, nil
}

// namesOf are the names of h's attributes; none where there cannot be any.
func namesOf(ctx context.Context, x vfs.Xattrer, h vfs.Handle) ([]string, error) {
	if x == nil {
		return nil, nil
	}
	names, err := x.Xattrs(ctx, h)
	if errors.Is(err, vfs.ErrNotSupp) {
		return nil, nil
	}
	return names, err
}
