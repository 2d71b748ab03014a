package delta

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nfsbox/nfsbox/internal/tools/walk"
	"github.com/nfsbox/nfsbox/vfs"
)

// lookups is how many names are looked up at once.
const lookups = 32

// extras reports what only the right side has in the present range. Both listings have come to
// their end.
func (j *joiner) extras(ctx context.Context, d *Dir) error {
	if j.o.NoExtras {
		d.table.clear()
		return nil
	}
	for some := d.table.pop(lookups); len(some) > 0; some = d.table.pop(lookups) {
		absent, err := j.absent(ctx, d, some)
		if err == nil && len(absent) > 0 {
			err = j.still(ctx, d)
		}
		if cerr := ctx.Err(); cerr != nil {
			return cerr
		}
		if err != nil {
			d.end(err)
			return j.v.Fault(ctx, d, "", err)
		}
		for _, e := range absent {
			if err := j.extra(ctx, d, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// extra reports one entry.
func (j *joiner) extra(ctx context.Context, d *Dir, e *vfs.Entry) error {
	if err := walk.Check(e); err != nil {
		return j.v.FaultRight(ctx, d, string(e.Name[:min(len(e.Name), vfs.MaxName)]), err)
	}
	return j.v.Extra(ctx, d, e)
}

// absent looks the entries up on the left side, at once, and returns those that are not there. Bad
// names are not looked up.
func (j *joiner) absent(ctx context.Context, d *Dir, some []*vfs.Entry) (absent []*vfs.Entry, err error) {
	errs := make([]error, len(some))
	var wg sync.WaitGroup
	for i, e := range some {
		name := string(e.Name)
		if errs[i] = vfs.ErrNoEnt; vfs.CheckName(name) != nil {
			continue
		}
		wg.Go(func() { _, _, _, errs[i] = j.left.Lookup(ctx, d.Handle, name) })
	}
	wg.Wait()
	for i, err := range errs {
		switch {
		case err == nil: // it has come since, or the left side takes it for another name
		case errors.Is(err, vfs.ErrNoEnt):
			absent = append(absent, some[i])
		default:
			return nil, fmt.Errorf("lookup: %w", err)
		}
	}
	return absent, nil
}

// still returns an error if d does not have its name any more. A directory that was removed has no
// names in it, and one that was moved away is compared elsewhere.
func (j *joiner) still(ctx context.Context, d *Dir) error {
	if d.Parent == nil {
		return j.stillRoot(ctx, d)
	}
	h, now, _, err := j.left.Lookup(ctx, d.Parent.Handle, d.Name)
	switch {
	case errors.Is(err, vfs.ErrNoEnt), err == nil && walk.Unlinked(d.Attr.Nlink, &now):
		return fmt.Errorf("%w: %w", walk.ErrVanished, vfs.ErrNoEnt)
	case err != nil:
		return fmt.Errorf("look the directory up again: %w", err)
	case h != d.Handle && differ(&d.Attr, &now):
		return fmt.Errorf("another %v took its name while it was compared: %w", now.Type, vfs.ErrStale)
	}
	return nil
}

func (j *joiner) stillRoot(ctx context.Context, d *Dir) error {
	now, err := j.left.GetAttr(ctx, d.Handle, vfs.MaskV3)
	if err == nil && walk.Unlinked(d.Attr.Nlink, &now) {
		err = vfs.ErrStale
	}
	if err != nil {
		return fmt.Errorf("look at the directory again: %w", err)
	}
	return nil
}

// differ reports whether two objects are known to be two.
func differ(a, b *vfs.Attr) bool {
	const id = vfs.MaskFSID | vfs.MaskFileID
	return a.Has(id) && b.Has(id) && (a.FSID != b.FSID || a.FileID != b.FileID)
}
