//go:build linux

package inotify

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// eventBuffer is how many bytes of events are read at once, some 4000 of them.
const eventBuffer = 64 << 10

func (n *Watches) listen(file *os.File) {
	buf := make([]byte, eventBuffer)
	for {
		got, err := file.Read(buf)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil {
			n.Report(fmt.Errorf("what local programs change is no longer heard of: %w", err))
			n.tellAll()
			return
		}
		for b := buf[:got]; len(b) >= unix.SizeofInotifyEvent; {
			wd, mask := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:])
			n.event(wd, mask)
			b = b[min(unix.SizeofInotifyEvent+int(binary.NativeEndian.Uint32(b[12:])), len(b)):]
		}
	}
}

// event deals with one event: it looks at what has become of the object.
func (n *Watches) event(wd int32, mask uint32) {
	if mask&unix.IN_Q_OVERFLOW != 0 {
		n.tellAll()
		return
	}
	n.mu.Lock()
	o := n.watched[wd]
	n.mu.Unlock()
	if o == nil {
		return
	}
	now, change := State{}, vfs.ChangeGone
	var err error
	if mask&(unix.IN_IGNORED|unix.IN_DELETE_SELF|unix.IN_UNMOUNT) == 0 {
		if now, err = n.Look(o.x); err == nil {
			change = 0
		} else if !errors.Is(err, vfs.ErrStale) {
			change |= vfs.ChangeRights
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.watched[wd] != o {
		return
	}
	if change == 0 {
		change = o.was.changed(now)
		o.was = now
	}
	o.tell(change)
	if mask&unix.IN_IGNORED != 0 {
		n.forget(o)
	}
}

// tellAll tells all watchers that something may have happened.
func (n *Watches) tellAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.watched {
		o.tell(vfs.ChangeGone | vfs.ChangeRights)
	}
}

// start begins to listen. n.mu is held.
func (n *Watches) start() error {
	switch {
	case n.file != nil:
		return nil
	case n.closed:
		return vfs.ErrNotSupp
	}
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil { // the next watch tries again: descriptors may be short, or instances
		if !n.silent {
			n.silent = true
			n.Report(fmt.Errorf("what local programs change is not heard of: inotify: %w", err))
		}
		return vfs.ErrNotSupp
	}
	n.file, n.fd, n.most = os.NewFile(uintptr(fd), "inotify"), fd, mostInodes()
	n.watched, n.byName, n.byInode = make(map[int32]*watched), make(map[vfs.Handle]*watched), make(map[inode]*watched)
	n.Opened(1)
	file := n.file
	n.running.Go(func() { n.listen(file) })
	return nil
}

// mostInodes is how many inodes are watched at most.
func mostInodes() int {
	raw, err := os.ReadFile(watchesLimit)
	if err != nil {
		return maxWatches
	}
	limit, err := strconv.Atoi(string(bytes.TrimSpace(raw)))
	if err != nil {
		return maxWatches
	}
	return max(1, min(maxWatches, limit/watchesShare))
}
