package v3

import (
	"context"
	"errors"

	"github.com/nfsbox/nfsbox/vfs"
)

// reopen opens h, as READ, WRITE and COMMIT do on every call, once; the file is
// closed before the call ends. Two rights that a client's kernel has checked when
// its program opened the file are granted here although the mode now says no, as
// every NFSv3 server does (RFC 1813, section 4.4):
//
//   - the owner may read and write: it may have opened the file before it took
//     its own right away, or have created it read-only with open(2);
//   - a caller that may execute may read, since the client loads a program by reading it.
func (q *request) reopen(ctx context.Context, h vfs.Handle, access vfs.Share) (vfs.File, error) {
	q.open.Access = access
	_, err := q.view.FS.OpenIn(ctx, &q.file, vfs.At{H: h}, &q.open)
	if err == nil {
		return &q.file, nil
	}
	if !errors.Is(err, vfs.ErrAccess) || !q.owns(ctx, h) && !(access == vfs.ShareRead && q.mayExecute(ctx, h)) {
		return nil, err
	}
	f, _, err := q.fs.As(nil).Open(ctx, vfs.At{H: h}, &q.open)
	return f, err
}

// closeFile closes f even if the call's context has ended.
func closeFile(ctx context.Context, f vfs.File) error {
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	return f.Close(ctx)
}

// owns reports whether the caller is the owner of h.
func (q *request) owns(ctx context.Context, h vfs.Handle) bool {
	attr, err := q.fs.GetAttr(ctx, h, vfs.MaskV3)
	return err == nil && attr.Has(vfs.MaskUID) && q.view.FS.Owns(ctx, h, attr.UID)
}

func (q *request) mayExecute(ctx context.Context, h vfs.Handle) bool {
	got, _, err := q.fs.Access(ctx, h, vfs.AccessExecute)
	return err == nil && got&vfs.AccessExecute != 0
}

// resizing is what ftruncate(2) sets. An owner may set it through a descriptor that it
// holds, whatever the mode says by now.
const resizing = vfs.MaskSize | vfs.MaskAtime | vfs.MaskMtime

// mayResize reports whether set, which was refused to the caller, is an ftruncate by the
// owner.
func (q *request) mayResize(ctx context.Context, h vfs.Handle, set *vfs.SetAttr) bool {
	return set.Valid&vfs.MaskSize != 0 && set.Valid&^resizing == 0 && q.owns(ctx, h)
}
