package job

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// forget tells f that the job is done with dir, if f keeps memory for directories. For
// directories of the source the walk does it.
func forget(f vfs.FS, dir vfs.Handle) {
	if k, ok := vfs.As[vfs.Forgetter](f); ok {
		k.Forget(dir)
	}
}

// maxForgotten is how many directories of the destination are forgotten before the waiting
// links and nodes are synced: their handles lead through these directories.
const maxForgotten = 1024

// letGo forgets a directory of the destination, unless a file in it may get further names.
func (j *copyJob) letGo(ctx context.Context, s *dirState) error {
	if s.linked.Load() {
		return nil
	}
	if j.forgotten.Add(1)%maxForgotten == 0 {
		if err := j.syncNodes(ctx); err != nil {
			return err
		}
	}
	forget(j.o.Dest.FS, s.handle)
	return nil
}
