package upstream

import (
	"context"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// kept are files that are kept open between READs, by object and caller.
type kept struct {
	mu     sync.Mutex
	closed bool
	n      int
	files  map[vfs.Handle]map[string]*keptFile
	last   map[vfs.Handle]version // that passed last
}

// version is what tells one state of a file from another. The zero version is not known.
type version struct {
	size         uint64
	mtime, ctime time.Time
}

func (v version) same(o version) bool {
	return v.size == o.size && v.mtime.Equal(o.mtime) && v.ctime.Equal(o.ctime) && !v.ctime.IsZero()
}

// keptFile is one of them. The mu of kept guards it.
type keptFile struct {
	who     string
	file    vfs.File
	opened  vfs.Opened
	version version // that passed last before it was opened, so that what it reads is as new
	uses    int
	gone    bool // no longer in the table: the last use closes it
	idle    *time.Timer
}

func (k *kept) init() {
	k.files, k.last = make(map[vfs.Handle]map[string]*keptFile), make(map[vfs.Handle]version)
}

// lastOf is the version of a file that passed last.
func (k *kept) lastOf(h vfs.Handle) version {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.last[h]
}

// lend is the file that is open for the caller; nil: there is none.
func (k *kept) lend(h vfs.Handle, c *vfs.Caller) *keptFile {
	k.mu.Lock()
	defer k.mu.Unlock()
	x := k.files[h][c.Key()]
	if x != nil {
		x.uses++
		x.idle.Stop()
	}
	return x
}

// add keeps a file that was just opened, and lends it. It is nil if there is no room, or another one.
func (k *kept) add(c *vfs.Caller, file vfs.File, opened *vfs.Opened, v version) *keptFile {
	x := &keptFile{who: c.Key(), file: file, opened: *opened, version: v, uses: 1}
	k.mu.Lock()
	defer k.mu.Unlock()
	of := k.files[opened.H]
	if k.closed || k.n >= maxKept || of[x.who] != nil {
		return nil
	}
	if of == nil {
		of = make(map[string]*keptFile)
		k.files[opened.H] = of
	}
	of[x.who] = x
	k.n++
	x.idle = time.AfterFunc(keepIdle, func() { k.expire(x) })
	x.idle.Stop()
	return x
}

// giveBack ends one use.
func (k *kept) giveBack(ctx context.Context, x *keptFile) error {
	k.mu.Lock()
	x.uses--
	last := x.uses == 0 && x.gone
	if x.uses == 0 && !x.gone {
		x.idle.Reset(keepIdle)
	}
	k.mu.Unlock()
	if !last {
		return nil
	}
	return x.file.Close(ctx)
}

// expire closes a file that nobody has used for a while.
func (k *kept) expire(x *keptFile) {
	k.mu.Lock()
	unused := x.uses == 0 && !x.gone
	if unused {
		k.take(x)
	}
	k.mu.Unlock()
	if unused {
		_ = x.file.Close(context.Background()) // a file that was read has nothing to lose
	}
}

// take takes a file out of the table. k.mu is held.
func (k *kept) take(x *keptFile) {
	x.gone = true
	x.idle.Stop()
	k.n--
	of := k.files[x.opened.H]
	if delete(of, x.who); len(of) == 0 {
		delete(k.files, x.opened.H)
	}
}

// notice is told of attributes that pass. Files that were opened before the object became that are given up.
func (k *kept) notice(h vfs.Handle, a *vfs.Attr) {
	const versioned = vfs.MaskType | vfs.MaskSize | vfs.MaskMtime | vfs.MaskCtime
	if !a.Has(versioned) || a.Type != vfs.TypeReg || h.IsZero() {
		return
	}
	now := version{a.Size, a.Mtime, a.Ctime}
	k.mu.Lock()
	idle := k.giveUp(h, func(x *keptFile) bool { return !x.version.same(now) })
	if _, there := k.last[h]; !there && len(k.last) >= maxLast {
		for old := range k.last { // Go walks maps from a random place
			delete(k.last, old)
			break
		}
	}
	k.last[h] = now
	k.mu.Unlock()
	closeAll(idle)
}

// drop gives up the files of an object.
func (k *kept) drop(h vfs.Handle) {
	k.mu.Lock()
	idle := k.giveUp(h, func(*keptFile) bool { return true })
	delete(k.last, h)
	k.mu.Unlock()
	closeAll(idle)
}

// giveUp takes files of an object out of the table, and returns those that are to be closed. k.mu is held.
func (k *kept) giveUp(h vfs.Handle, which func(*keptFile) bool) (idle []*keptFile) {
	for _, x := range k.files[h] {
		if !which(x) {
			continue
		}
		if k.take(x); x.uses == 0 {
			idle = append(idle, x)
		}
	}
	return idle
}

// closeAll closes files that were read, and have nothing to lose.
func closeAll(files []*keptFile) {
	for _, x := range files {
		_ = x.file.Close(context.Background())
	}
}

// close closes all that nobody uses, and keeps no more.
func (k *kept) close() {
	k.mu.Lock()
	k.closed = true
	var idle []*keptFile
	for h := range k.files {
		idle = append(idle, k.giveUp(h, func(*keptFile) bool { return true })...)
	}
	k.mu.Unlock()
	closeAll(idle)
}
