package daemon

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/server/daemon/paths"
	"github.com/nfsbox/nfsbox/internal/server/iogate"
	"github.com/nfsbox/nfsbox/internal/server/localfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// site is all that makes one open directory differ from another. Exports with the same
// site share it. A reload that does not change the site keeps its descriptors and handles.
type site struct {
	dir                       string      // without symbolic links
	at                        paths.Place // where that has led to
	handles                   string
	crossMounts, localWriters bool
	remote                    // another server's directory, if it is one
}

// remote is what another server has, and how it is served.
type remote struct {
	from             string // a URL
	cache, cacheConf string
	offline          time.Duration
}

// name is what the site is called in messages.
func (s *site) name() string { return s.dir + s.from }

// directories are those that are open.
type directories map[site]*directory

// directory is one that is open, and its way through the gate.
type directory struct {
	fs    vfs.FS
	far   atomic.Pointer[nfsbox.Client] // of another server, once it was reached; nil: not yet, or it is a directory of this host
	local *localfs.FS                   // is fs; nil: fs is another server's
	lanes *iogate.Lanes                 // nil likewise
	tree  []byte                        // see export.Export
	ended func()                        // called when it is closed
}

func (x *directory) close() error {
	if x.local == nil {
		return vfs.CloseFS(x.fs)
	}
	defer x.ended()
	defer x.lanes.Close()
	return x.local.Close()
}

// sites are the open directories, and those that reloads have taken out of service while
// calls are still at work in them.
type sites struct {
	open    atomic.Pointer[directories] // replaced as a whole, by run's goroutine alone
	leaving sync.WaitGroup
	left    atomic.Int32 // how many are leaving
	states  sync.Map     // the place of each that is open or leaving, by its folder
	end     context.CancelFunc
	ended   context.Context
}

func (s *sites) now() directories {
	if p := s.open.Load(); p != nil {
		return *p
	}
	return nil
}

// taken reports whether the folder is that of another directory, not closed yet.
func (s *sites) taken(state string, by paths.Place) bool {
	at, ok := s.states.Load(state)
	return ok && at != by
}

// close makes stable what was written, and closes all. The server has ended, and
// end was called.
func (s *sites) close() (err error) {
	s.leaving.Wait()
	for _, x := range s.now() {
		err = errors.Join(err, x.close())
	}
	return err
}

func siteOf(e *config.Export) (s site, err error) {
	if e.From != "" {
		return site{handles: e.Handles, remote: remote{e.From, e.Cache, e.CacheConfig, time.Duration(e.Offline)}}, nil
	}
	s = site{handles: e.Handles, crossMounts: e.CrossMounts, localWriters: e.LocalWriters}
	if s.dir, err = realDir(e.Dir); err == nil {
		s.at, _, err = paths.PlaceOf(s.dir)
	}
	return s, err
}

func realDir(dir string) (string, error) {
	real, err := filepath.Abs(dir)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return "", fmt.Errorf("serve %s: %w", dir, err)
	}
	return real, nil
}

// treeOf is the directory as the tree of an export.
func (s *site) treeOf(export string) paths.Tree {
	return paths.Tree{Name: export, Dir: s.dir, At: s.at, Crosses: s.crossMounts}
}

func (a directories) without(b directories) directories {
	out := make(directories)
	for s, x := range a {
		if b[s] == nil {
			out[s] = x
		}
	}
	return out
}

// errMoved says that a directory was replaced while it was being opened.
var errMoved = errors.New("it has become another directory meanwhile")

// tree tells the directory from others at the same path, at other times, for
// export.Export: by the handle of its root, which survives restarts, and by its volume.
func (s *site) tree(fs *localfs.FS) ([]byte, error) {
	root, _, err := fs.Root(context.Background())
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", s.dir, err)
	}
	volume, err := paths.VolumeOf(s.dir)
	if err != nil {
		return nil, err
	}
	if now, _, err := paths.PlaceOf(s.dir); err != nil || now != s.at {
		return nil, errors.Join(fmt.Errorf("serve %s: %w", s.dir, errMoved), err)
	}
	return append(root.Bytes(), volume...), nil
}
