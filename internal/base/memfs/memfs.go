package memfs

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// Defaults of Options.
const (
	// DefaultMaxBytes bounds the pages of all files; at the bound it is ErrNoSpace.
	DefaultMaxBytes = 4 << 30
	// DefaultMaxFiles bounds the objects; at the bound it is ErrNoSpace.
	DefaultMaxFiles = 1 << 22
	// DefaultMaxLinks bounds the names of one object, as ext4 does; at the bound it is ErrMLink.
	// Directories in a directory are not counted.
	DefaultMaxLinks = 65000
	// DefaultTransfer bounds one ReadAt or WriteAt; a larger one is short.
	DefaultTransfer = 1 << 20
)

// MaxFileSize is the largest size of a file; beyond it is ErrFBig.
const MaxFileSize = math.MaxInt64

// maxViews bounds the cache of views. At the bound the oldest is dropped; it goes on working
// for its users.
const maxViews = 64

// Options say how an FS behaves. The zero Options are usable.
type Options struct {
	// Now is the clock of all times; nil is time.Now.
	Now func() time.Time
	// TimeDelta is the resolution of the times that the FS keeps; 0 is 1 ns.
	TimeDelta time.Duration
	// Verifier is the first write verifier. Restart counts it up.
	Verifier vfs.Verifier
	// ID is the FS's identity in handles and in Attr.FSID; 0 draws a random one.
	ID uint64
	// Fault, if not nil, is called before each operation, with the procedure's name ("lookup",
	// "write", "readdir" once per page, ...) and the handle that it starts from. An error is the
	// operation's result, and nothing is done. It may wait, and should stop with ctx.
	Fault func(ctx context.Context, op string, h vfs.Handle) error

	MaxBytes uint64 // 0: DefaultMaxBytes
	MaxFiles uint64 // 0: DefaultMaxFiles
	MaxLinks uint32 // 0: DefaultMaxLinks

	ReadMax, WriteMax uint32 // of one call; 0: DefaultTransfer

	UID, GID uint32 // the owner of the root
	Mode     uint32 // the root's; 0: 0755
}

func (o *Options) fill() {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.TimeDelta = max(o.TimeDelta, 1)
	for o.ID == 0 {
		o.ID = rand.Uint64()
	}
	o.MaxBytes = orDefault(o.MaxBytes, DefaultMaxBytes)
	o.MaxFiles = orDefault(o.MaxFiles, DefaultMaxFiles)
	o.MaxLinks = orDefault(o.MaxLinks, DefaultMaxLinks)
	o.ReadMax = orDefault(o.ReadMax, DefaultTransfer)
	o.WriteMax = orDefault(o.WriteMax, DefaultTransfer)
	o.Mode = orDefault(o.Mode, 0o755)
}

func orDefault[T uint32 | uint64](v, otherwise T) T {
	if v == 0 {
		return otherwise
	}
	return v
}

// FS is one caller's view of a tree in memory. It is a vfs.FS.
type FS struct {
	*tree
	who *vfs.Caller // nil: the superuser
}

var _ vfs.FS = (*FS)(nil)

// tree is the state that all views share.
type tree struct {
	opt Options

	mu     sync.RWMutex
	inodes map[uint64]*inode
	root   *inode
	last   uint64 // inode number last given
	change uint64 // the last value of any Attr.Change
	pages  uint64 // held by files
	opens  int    // Files not closed
	verf   vfs.Verifier

	viewsMu sync.RWMutex
	views   []*FS // the first is the superuser's and stays
	oldest  int   // index in views of the next one to drop
}

// New makes an empty file system and returns the superuser's view of it.
func New(opt Options) *FS {
	opt.fill()
	t := &tree{opt: opt, inodes: make(map[uint64]*inode), verf: opt.Verifier}
	f := &FS{tree: t}
	t.views = []*FS{f}
	t.root = t.newInode(vfs.TypeDir)
	t.root.uid, t.root.gid, t.root.mode = opt.UID, opt.GID, opt.Mode&0o7777
	t.root.nlink = 2
	t.root.dir = newDirectory(t.root)
	return f
}

// As returns the view of c. Equal callers usually get the same one.
func (f *FS) As(c *vfs.Caller) vfs.FS {
	t := f.tree
	t.viewsMu.RLock()
	v := t.view(c)
	t.viewsMu.RUnlock()
	if v != nil {
		return v
	}
	t.viewsMu.Lock()
	defer t.viewsMu.Unlock()
	if v := t.view(c); v != nil {
		return v
	}
	v = &FS{tree: t, who: c}
	if len(t.views) < maxViews {
		t.views = append(t.views, v)
		return v
	}
	t.oldest = t.oldest%(maxViews-1) + 1
	t.views[t.oldest] = v
	return v
}

// view finds a cached view. The caller holds viewsMu.
func (t *tree) view(c *vfs.Caller) *FS {
	for _, v := range t.views {
		if v.who.Equal(c) {
			return v
		}
	}
	return nil
}

// OpenFiles is the number of open Files.
func (f *FS) OpenFiles() int {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.opens
}

// begin is called first by every operation. It returns the error of an ended context, or of the
// fault hook.
func (t *tree) begin(ctx context.Context, op string, h vfs.Handle) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if t.opt.Fault == nil {
		return nil
	}
	return t.opt.Fault(ctx, op, h)
}

// now is the clock at the FS's resolution, without a monotonic reading.
func (t *tree) now() time.Time { return t.opt.Now().Truncate(t.opt.TimeDelta) }

// handleSize is the size of every handle: inode number, FS identity.
const handleSize = 16

func (t *tree) handle(n *inode) vfs.Handle {
	var b [handleSize]byte
	binary.BigEndian.PutUint64(b[:8], n.num)
	binary.BigEndian.PutUint64(b[8:], t.opt.ID)
	h, err := vfs.MakeHandle(b[:])
	if err != nil {
		panic("memfs: " + err.Error()) // 16 bytes always fit
	}
	return h
}

// get returns the inode of h. The caller holds mu.
func (t *tree) get(h vfs.Handle) (*inode, error) {
	b := h.Bytes()
	if len(b) != handleSize || binary.BigEndian.Uint64(b[8:]) != t.opt.ID {
		return nil, vfs.ErrBadHandle
	}
	num := binary.BigEndian.Uint64(b[:8])
	if num == 0 || num > t.last {
		return nil, vfs.ErrBadHandle
	}
	n := t.inodes[num]
	if n == nil {
		return nil, vfs.ErrStale
	}
	return n, nil
}

// getDir returns the directory of h. The caller holds mu.
func (t *tree) getDir(h vfs.Handle) (*inode, error) {
	n, err := t.get(h)
	if err != nil {
		return nil, err
	}
	if n.dir == nil {
		return nil, vfs.ErrNotDir
	}
	return n, nil
}

// Restart is a power cut and what follows: unstable bytes that were not
// committed are forgotten, files that had no name are gone, nothing is locked,
// and the write verifier is another. Files that are open go on, as NFSv3 knows no opens.
func (f *FS) Restart() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.inodes {
		if n.nlink == 0 {
			f.drop(n)
			continue
		}
		n.locks = nil
		f.pages -= uint64(len(n.content.pages))
		if n.content.restart() {
			f.modified(n, f.now()) // caches must read it again
		}
		f.pages += uint64(len(n.content.pages))
	}
	binary.BigEndian.PutUint64(f.verf[:], binary.BigEndian.Uint64(f.verf[:])+1)
}
