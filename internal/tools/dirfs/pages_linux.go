package dirfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/vfs"
)

// cookieVerf goes with every cookie. It never changes: cookies are the file system's own
// d_off, which stay valid.
var cookieVerf = vfs.Verifier{'d', '_', 'o', 'f', 'f', 0, 0, 2}

// Sizes of the part of a directory that is read at a time, in bytes.
const (
	maxPage = 32 << 10
	minPage = 4 << 10
)

// order is what all listings of an FS share.
type order struct{}

func newOrder() order { return order{} }

// pages lists a directory by getdents64(2), page by page.
type pages struct {
	fd   int // -1: not open
	at   vfs.Pos
	buf  []byte
	rest []byte // of buf: not taken yet
	size int
}

// from begins a listing at a position. It keeps the buffer of the previous listing.
func (p *pages) from(_ *FS, at vfs.Pos, maxBytes uint32) {
	size := maxPage
	if maxBytes != 0 {
		size = int(min(max(maxBytes, minPage), maxPage))
	}
	*p = pages{fd: -1, at: at, size: size, buf: p.buf}
}

func (p *pages) more() bool { return len(p.rest) > 0 }

func (p *pages) close() {
	if p.fd >= 0 {
		_ = unix.Close(p.fd) // it was read only
		p.fd = -1
	}
}

// next reads a page, from the current position.
func (p *pages) next(d *hostDir) (over bool, err error) {
	if p.at.Cookie != 0 && p.at.Verf != cookieVerf || p.at.Cookie > math.MaxInt64 {
		return false, vfs.ErrBadCookie
	}
	if p.buf == nil {
		p.buf = make([]byte, maxPage)
	}
	if p.fd < 0 {
		if p.fd, err = d.readable(); err != nil {
			return false, err
		}
		if p.at.Cookie != 0 {
			if _, err := unix.Seek(p.fd, int64(p.at.Cookie), unix.SEEK_SET); err != nil {
				return false, fmt.Errorf("dirfs: seek in a directory: %s: %w", err.Error(), vfs.ErrBadCookie)
			}
		}
	}
	var n int
	err = again(func() (err error) {
		n, err = unix.Getdents(p.fd, p.buf[:p.size])
		return err
	})
	if errors.Is(err, unix.ENOENT) {
		return false, vfs.ErrStale // removed meanwhile
	}
	if err != nil {
		return false, err
	}
	p.rest = p.buf[:n]
	return n == 0, nil
}

// direntHead is the offset of d_name in struct linux_dirent64.
const direntHead = 19

// take returns the next entry of the page. "." and ".." are among them.
func (p *pages) take() (name []byte, ino uint64, at vfs.Pos, err error) {
	name, ino, off, n := parseDirent(p.rest)
	if n == 0 {
		return nil, 0, at, fmt.Errorf("dirfs: getdents64 returned a malformed entry: %w", vfs.ErrIO)
	}
	p.rest = p.rest[n:]
	p.at = vfs.Pos{Cookie: off, Verf: cookieVerf}
	return name, ino, p.at, nil
}

// parseDirent decodes the struct linux_dirent64 at the start of b and returns its length; 0
// if it is malformed: a FUSE file system may send anything.
func parseDirent(b []byte) (name []byte, ino, off uint64, n int) {
	if len(b) <= direntHead {
		return nil, 0, 0, 0
	}
	n = int(binary.NativeEndian.Uint16(b[16:]))
	if n <= direntHead || n > len(b) {
		return nil, 0, 0, 0
	}
	ino, off = binary.NativeEndian.Uint64(b), binary.NativeEndian.Uint64(b[8:])
	for i, c := range b[direntHead:n] {
		if c == '/' || c == 0 && i == 0 {
			return nil, 0, 0, 0
		}
		if c == 0 {
			return b[direntHead : direntHead+i : direntHead+i], ino, off, n
		}
	}
	return nil, 0, 0, 0
}

// searchDir returns the name in d for which is returns true; "" if there is none.
func searchDir(d *hostDir, is func(name []byte, ino uint64) bool) (string, error) {
	var p pages
	p.from(nil, vfs.Pos{}, 0)
	defer p.close()
	for {
		if over, err := p.next(d); over || err != nil {
			return "", fail("list", err)
		}
		for p.more() {
			name, ino, _, err := p.take()
			if err != nil {
				return "", err
			}
			if !dots(name) && is(name, ino) {
				return string(name), nil
			}
		}
	}
}
