package hands

import (
	"context"

	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

// Hands do to single files what a job has decided. Its methods may be called concurrently.
type Hands interface {
	// Copy is transfer.File, of a file of d. The Result has no Handle where nobody asked for it.
	Copy(ctx context.Context, d *Dir, src transfer.Source, dst transfer.Target, o *transfer.Options) (transfer.Result, error)

	// Compare is transfer.Compare, of two files of d. a has the Dir and the Name, and b the same name in the
	// directory on the other side.
	Compare(ctx context.Context, d *Dir, a, b transfer.Source, size uint64, o *transfer.Options) (transfer.Comparison, error)

	// Remove is vfs.FS.Remove, of a name of d that is no directory's.
	Remove(ctx context.Context, d *Dir, f vfs.FS, dir vfs.Handle, name string) error

	// AtOnce is how many files a job should give to its hands at once. 0: it knows best.
	AtOnce() int
}

// Dir is a directory of a job's tree. It is at the same path on both sides.
type Dir struct {
	// Path are the names that lead to it from the tree's root.
	Path func() []string
	// Source and Dest are its attributes on both sides, as far as they are known; nil: they are not.
	Source, Dest *vfs.Attr
}

// Own are a job's own hands: it does all that itself.
type Own struct{}

// Copy implements Hands.
func (Own) Copy(ctx context.Context, _ *Dir, src transfer.Source, dst transfer.Target, o *transfer.Options) (transfer.Result, error) {
	return transfer.File(ctx, src, dst, o)
}

// Compare implements Hands.
func (Own) Compare(ctx context.Context, _ *Dir, a, b transfer.Source, size uint64, o *transfer.Options) (transfer.Comparison, error) {
	return transfer.Compare(ctx, a, b, size, o)
}

// Remove implements Hands.
func (Own) Remove(ctx context.Context, _ *Dir, f vfs.FS, dir vfs.Handle, name string) error {
	_, err := f.Remove(ctx, dir, name, false)
	return err
}

// AtOnce implements Hands.
func (Own) AtOnce() int { return 0 }
