package job

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// forget says to f that the job is done with what is in dir, if f keeps something for
// directories. The walk does so for those of the source.
func forget(f vfs.FS, dir vfs.Handle) {
	if k, ok := vfs.As[vfs.Forgetter](f); ok {
		k.Forget(dir)
	}
}

// maxForgotten is how many directories of the destination are forgotten before the
// links and nodes that wait are synced: their handles lead through them.
const maxForgotten = 1024

// letGo forgets a directory of the destination that has been left.
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
