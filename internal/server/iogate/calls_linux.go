package iogate

// Pread is pread(2) for a caller that has a place: by the caller or by a pool, as the kind
// says. So are Pwrite, Fsync and Fdatasync. Errors are those of the system calls, and
// short counts are passed on. A pool's thread does not have the caller's identity: work
// that needs it is done by the caller itself, between Enter and Leave.
func (l *Lanes) Pread(fd int, p []byte, off int64) (int, error) { return l.run(opRead, fd, p, off) }

// Pwrite is described at Pread.
func (l *Lanes) Pwrite(fd int, p []byte, off int64) (int, error) { return l.run(opWrite, fd, p, off) }

// Fsync is described at Pread.
func (l *Lanes) Fsync(fd int) error {
	_, err := l.run(opFsync, fd, nil, 0)
	return err
}

// Fdatasync is described at Pread.
func (l *Lanes) Fdatasync(fd int) error {
	_, err := l.run(opFdatasync, fd, nil, 0)
	return err
}

func (l *Lanes) run(op op, fd int, p []byte, off int64) (int, error) {
	switch {
	case l == nil || l.g.kind == None:
		return op.do(fd, p, off)
	case l.g.pool == nil:
		return op.block(fd, p, off)
	}
	return l.g.pool.run(op, fd, p, off)
}
