package dirfs

import (
	"context"
	"sync"

	"github.com/nfsbox/nfsbox/vfs"
)

// Sync implements vfs.Syncer. Files and directories are synced one by one. An object that
// cannot be opened for it (a link, pipe or device) takes a sync of its whole file system,
// which all waiting calls share. Windows does not allow all of it: see the package's doc.
func (f *FS) Sync(ctx context.Context, h vfs.Handle) error {
	if err := f.begin(ctx); err != nil {
		return err
	}
	defer f.end()
	_, o, err := f.find(h)
	if err != nil {
		return err
	}
	defer f.leave(o.s)
	switch o.st.Type {
	case vfs.TypeReg:
		err = f.syncFile(&o)
	case vfs.TypeDir:
		err = f.syncDir(&o)
	default:
		err = f.share.do(o.st.FSID[0], o.dir.syncAll)
	}
	if err = fail("fsync", err); err != nil {
		f.verf.Add(1)
	}
	return err
}

func (f *FS) syncFile(o *place) error {
	file, _, err := o.openFile(syncBy)
	if err != nil {
		// Write-only, or not readable by us: sync the whole file system.
		return f.share.do(o.st.FSID[0], o.dir.syncAll)
	}
	err = file.Sync()
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	return err
}

func (f *FS) syncDir(o *place) error {
	if o.name == "." {
		return o.dir.sync()
	}
	d, err := o.dir.sub(o.name)
	if err != nil {
		return err
	}
	defer d.close()
	var st stat
	if err := d.self(&st); err != nil {
		return err
	}
	if st.id() != o.st.id() {
		return vfs.ErrStale
	}
	return d.sync()
}

// share lets calls that want the same file system synced wait together: they join the next
// round, which has not begun.
type share struct {
	mu    sync.Mutex
	next  map[uint64]*round
	turns sync.Mutex // one round at a time
}

type round struct {
	done chan struct{}
	err  error // set when done is closed
}

func (s *share) do(dev uint64, sync func() error) error {
	s.mu.Lock()
	if r := s.next[dev]; r != nil {
		s.mu.Unlock()
		<-r.done
		return r.err
	}
	r := &round{done: make(chan struct{})}
	if s.next == nil {
		s.next = make(map[uint64]*round)
	}
	s.next[dev] = r
	s.mu.Unlock()
	s.turns.Lock()
	defer s.turns.Unlock()
	s.mu.Lock()
	delete(s.next, dev)
	s.mu.Unlock()
	r.err = sync()
	close(r.done)
	return r.err
}
