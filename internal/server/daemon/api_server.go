package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/nfsbox/nfsbox/internal/server/fileapi"
	"github.com/nfsbox/nfsbox/internal/server/iogate"
	"github.com/nfsbox/nfsbox/internal/server/object/dir"
)

// api is the file API: the same table as that of NFS, through the same gate.
type api struct {
	srv       *fileapi.Server // nil: none is served
	listeners []net.Listener
	tls       *certificates // nil: it does not speak TLS
	store     *dir.Store    // nil: there are paths alone
	lanes     *iogate.Lanes // of the store
	ended     sync.WaitGroup
	cancel    context.CancelFunc // ends what works for the store by itself
}

// storeGate lets the store through the gate as one client among those of exports.
type storeGate struct{ lanes *iogate.Lanes }

func (g storeGate) Enter(ctx context.Context, c dir.Class) error {
	return g.lanes.Enter(ctx, iogate.Class(c), "")
}

func (g storeGate) Leave(c dir.Class) { g.lanes.Leave(iogate.Class(c)) }

// shutdown lets calls finish until ctx ends, and then cuts them off.
func (x *api) shutdown(ctx context.Context) error {
	if x.srv == nil {
		return nil
	}
	err := x.srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.Join(errCutOff, x.srv.Close())
	}
	return err
}

// errCutOff says that clients of the file API have not got their answers.
var errCutOff = errors.New("calls of the file API were cut off")

// close gives back what openAPI has taken. Calls that were cut off get apiEnd to
// notice, so that they take their temporaries away while the file systems are open.
func (x *api) close() (err error) {
	if x.srv != nil {
		err = errors.Join(x.srv.Close(), x.wait())
	}
	for _, l := range x.listeners {
		if e := l.Close(); !errors.Is(e, net.ErrClosed) {
			err = errors.Join(err, e)
		}
	}
	if x.store != nil {
		x.cancel()
		x.ended.Wait()
		err = errors.Join(err, x.store.Close())
	}
	if x.lanes != nil {
		x.lanes.Close()
	}
	return err
}

// wait waits until no call is in progress, for apiEnd at most.
func (x *api) wait() error {
	ctx, cancel := context.WithTimeout(context.Background(), apiEnd)
	defer cancel()
	if err := x.srv.Wait(ctx); err != nil {
		return fmt.Errorf("calls of the file API are still at work after %v: %w", apiEnd, err)
	}
	return nil
}

// snapshots are the counts of the file API and its store; nil, of what there is not.
func (x *api) snapshots() (api *fileapi.Snapshot, store *dir.Snapshot) {
	if x.srv != nil {
		s := x.srv.Snapshot()
		api = &s
	}
	if x.store != nil {
		s := x.store.Snapshot()
		store = &s
	}
	return api, store
}

// renew goes over to what was read.
func (x *api) renew(s apiSecrets) {
	if x.srv == nil {
		return
	}
	x.srv.SetCallers(s.callers)
	if x.tls != nil {
		x.tls.now.Store(s.tls)
	}
}
