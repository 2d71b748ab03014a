package transfer

import (
	"context"
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/vfs"
)

// Probe reports whether dst.Dir is the directory that h is in f. It makes a
// temporary in dst.Dir, looks for it there, and removes it.
func Probe(ctx context.Context, dst Target, f vfs.FS, h vfs.Handle, o *Options) (same bool, err error) {
	name, err := o.TempName()
	if err != nil {
		return false, err
	}
	how := vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}}
	_, _, made := CreateTemp(ctx, &dst, name, &how)
	if made != nil && !errors.Is(made, vfs.ErrUnknownOutcome) {
		return false, fmt.Errorf("make a temporary in the destination: %w", made)
	}
	if err = made; err == nil {
		// Any error says that it is not there: a handle that is not f's, or one
		// of something else.
		_, _, _, lerr := f.Lookup(ctx, h, name)
		same, err = lerr == nil, ctx.Err()
	}
	return same, errors.Join(err, RemoveTemp(ctx, &dst, name, made))
}
