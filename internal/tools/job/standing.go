package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

// A file that stays is known by its size and time. Whoever may write to its directory can put a file of its own there that has both. To give
// that the source's owner, set-id bits or capabilities would let its bytes act for another. So it is judged first by what it would get.

// standing is what a file with the size and the time of its source may get.
type standing int

const (
	// stands: nothing that matters; size and time tell.
	stands standing = iota
	// doubtful: another owner or group. Its bytes are compared.
	doubtful
	// unfit: set-id bits or capabilities, or it has names besides those of the source. It is made anew: somebody may have it mapped,
	// and change its bytes after any comparison.
	unfit
)

// standing judges a file that has the size and the time of its source.
func (j *copyJob) standing(ctx context.Context, src *transfer.Source, there *object) (standing, error) {
	owner, setID := j.t.Owners.Gives(&src.Attr, &there.attr)
	if setID {
		return unfit, nil
	}
	if there.xattr || j.o.Sync != nil && j.o.Sync.ACLs {
		gets, err := j.getsCapability(ctx, src, there, owner)
		if gets || err != nil {
			return unfit, err
		}
	}
	if !owner || j.o.Sync == nil || !j.o.Sync.Wary {
		return stands, nil
	}
	if there.attr.Nlink > max(src.Attr.Nlink, 1) {
		return unfit, nil
	}
	return doubtful, nil
}

// xattrCapability are the capabilities that a file gives to whoever runs it.
const xattrCapability = "security.capability"

// getsCapability reports whether a file would get capabilities that it does not have. It gets them only with the source's owner: owner
// says that it may get that.
func (j *copyJob) getsCapability(ctx context.Context, src *transfer.Source, there *object, owner bool) (bool, error) {
	from, ok := vfs.As[vfs.Xattrer](src.FS)
	to, holds := vfs.As[vfs.Xattrer](j.o.Dest.FS)
	a, b := &src.Attr, &there.attr
	if !ok || !holds || !owner && (a.UID != b.UID || a.GID != b.GID) {
		return false, nil
	}
	want, err := from.Xattr(ctx, src.Handle, xattrCapability)
	if errors.Is(err, vfs.ErrNoXattr) || errors.Is(err, vfs.ErrNotSupp) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("capabilities of the source: %w", err)
	}
	have, err := to.Xattr(ctx, there.handle, xattrCapability)
	return err != nil || !bytes.Equal(have, want), nil
}

// otherBytes tells of a file that has the size and the time of its source, and is replaced.
func (j *copyJob) otherBytes(path string) {
	j.progress.Report(progress.Event{Type: "note", Path: path, Message: "it has the size and the time, but not the bytes: it is replaced"})
}
