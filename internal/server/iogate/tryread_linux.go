package iogate

import "golang.org/x/sys/unix"

// TryRead reads what is in memory without a place in any lane, and without
// blocking. If ok is false, all was not there, and Enter and Pread are the way:
// the first n bytes of p have been read nevertheless. They are all there is if
// the file ends behind them, which the caller can tell by its size.
//
// Descriptors opened with O_DIRECT are not for TryRead: they wait for the disk
// all the same.
func (l *Lanes) TryRead(fd int, p []byte, off int64) (n int, ok bool) {
	if l == nil || l.g.nowait.most == 0 || len(p) == 0 {
		return 0, false
	}
	w := &l.g.nowait
	if l.mute.Load() > 0 {
		l.mute.Add(-1)
		w.untried.Add(1)
		return 0, false
	}
	if w.inside.Add(1) > w.most {
		w.inside.Add(-1)
		w.untried.Add(1)
		return 0, false
	}
	n, errno := preadNowait(fd, p, off)
	w.inside.Add(-1)
	switch {
	case n == len(p):
		w.hits.Add(1)
		return n, true
	case errno == unix.EOPNOTSUPP || errno == unix.ENOSYS || errno == unix.EINVAL:
		// Not on this file system (overlayfs, tmpfs), or before Linux 4.14. An
		// export can have several file systems: it is tried again some day.
		l.mute.Store(nowaitRetry)
	}
	w.misses.Add(1)
	return n, false
}
