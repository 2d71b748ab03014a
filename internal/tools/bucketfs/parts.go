package bucketfs

import (
	"context"
	"crypto/md5"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// partSize is how long a part is, in bytes; those of a file that would have too many are longer, up to maxPart.
	partSize = 16 << 20
	maxPart  = bucket.MaxBody
	// inFlight is how many parts of a file are in memory at once, filled or on their way; of the longest ones as many as there is
	// memory for, two. Bytes of a later one wait.
	inFlight = 4
	// edge is how many bytes at the start and at the end of a file stay in memory until it is published, so that they can be read.
	edge = 64 << 10

	// metaPut has a number of the upload, by which its object is known again.
	metaPut = "X-Amz-Meta-Nfsbox-Put"
)

// parted is a file that is put in parts.
type parted struct {
	f      *FS
	key    string
	attr   vfs.Attr
	others []string
	size   int64
	part   int64 // bytes of each but the last
	window int   // how many parts are in memory at once
	held   int64 // of the memory
	upload upload
	there  map[int]bucket.Part // that an earlier Make has put
	isMade bool                // it has made the object

	mu         sync.Mutex
	moved      chan struct{} // closed, and another, when base or err changes
	open       map[int]*piece
	done       []bucket.Part // by number-1; its zero value is not done
	base       int           // the first that is not done
	head, tail []byte
	keep       bool
	ended      bool
	err        error
}

// piece is a part that is being filled.
type piece struct {
	content []byte
	left    int64 // bytes that are missing
}

// partOf is how long the parts of a file of size bytes are, unless they can be of some bytes.
func partOf(size, some int64) int64 {
	const unit = 1 << 20
	least := (size + bucket.MaxParts - 1) / bucket.MaxParts
	return max(some, (least+unit-1)/unit*unit)
}

// makeParts begins a file that is put in parts, or goes on with the upload of a mark. One that does not fit is aborted.
func (f *FS) makeParts(ctx context.Context, key string, a *vfs.Attr, others []string, mark string) (*parted, error) {
	m := &parted{f: f, key: key, attr: *a, others: others, size: int64(a.Size), part: partOf(int64(a.Size), f.part), moved: make(chan struct{}), open: make(map[int]*piece)}
	m.head, m.tail = make([]byte, edge), make([]byte, edge)
	m.done = make([]bucket.Part, (m.size+m.part-1)/m.part)
	m.window = min(inFlight, int(maxMemory/m.part), len(m.done))
	m.held = m.part * int64(m.window)
	if err := f.memory.Acquire(ctx, m.held); err != nil {
		return nil, err
	}
	err := m.begin(ctx, mark)
	if err != nil {
		f.memory.Release(m.held)
		return nil, err
	}
	return m, nil
}

// begin finds the upload of a mark, or begins one.
func (m *parted) begin(ctx context.Context, mark string) error {
	meta := metadata(isFile, &m.attr)
	meta["Content-Type"] = contentTypes[isFile]
	if was, ok := parseMark(mark); ok {
		if was.fits(m, meta) {
			there, err := m.f.c.Parts(ctx, m.f.root+m.key, was.id)
			if err == nil {
				m.upload, m.there = was, there
				return nil
			}
			if !errors.Is(err, object.ErrNotExist) {
				return fmt.Errorf("go on with an upload: %w", told(err, vfs.ErrStale))
			}
			sum, err := m.made(ctx, &was)
			if m.isMade = sum != ""; m.isMade || err != nil {
				m.upload = was
				return err
			}
		} else if err := m.f.Unmake(ctx, mark); err != nil {
			return fmt.Errorf("abort an upload that does not fit any more: %w", err)
		}
	}
	var number [8]byte
	_, _ = rand.Read(number[:]) // it never fails
	m.upload = upload{full: m.f.root + m.key, number: hex.EncodeToString(number[:]), about: about(m, meta)}
	meta[metaPut] = m.upload.number
	id, err := m.f.c.BeginUpload(ctx, m.f.root+m.key, meta)
	if err != nil {
		return fmt.Errorf("begin an upload: %w", told(err, vfs.ErrNoEnt))
	}
	m.upload.id = id
	return nil
}

// Resumed implements vfs.Making.
func (m *parted) Resumed() (n uint64) {
	if m.isMade {
		return uint64(m.size)
	}
	for _, p := range m.there {
		if p.Number <= len(m.done) && p.Size == m.length(p.Number-1) {
			n += uint64(p.Size)
		}
	}
	return n
}

// length is how many bytes the part i has.
func (m *parted) length(i int) int64 { return min(m.part, m.size-int64(i)*m.part) }

// WriteAt implements vfs.File. The write that completes a part puts it.
func (m *parted) WriteAt(ctx context.Context, p []byte, off uint64, _ vfs.Stability, w *vfs.Written) (n int, err error) {
	*w = vfs.Written{Committed: vfs.FileSync}
	if off > uint64(m.size) || uint64(len(p)) > uint64(m.size)-off {
		return 0, fmt.Errorf("it is longer than the %d bytes that were announced: %w", m.size, vfs.ErrFBig)
	}
	for n < len(p) {
		at := int64(off) + int64(n)
		i := int(at / m.part)
		c, err := m.wait(ctx, i)
		if err != nil {
			return n, err
		}
		from := at - int64(i)*m.part
		k := copy(c.content[from:], p[n:])
		m.remember(p[n:n+k], at)
		n += k
		if m.filled(c, int64(k)) {
			if err := m.put(ctx, i, c); err != nil {
				return n, err
			}
		}
	}
	return n, nil
}

// wait waits until the part i may be in memory.
func (m *parted) wait(ctx context.Context, i int) (*piece, error) {
	for {
		m.mu.Lock()
		switch {
		case m.ended:
			m.mu.Unlock()
			return nil, vfs.ErrInval
		case m.err != nil:
			defer m.mu.Unlock()
			return nil, m.err
		case i < m.base+m.window:
			defer m.mu.Unlock()
			c := m.open[i]
			if c == nil {
				if m.done[i].Number != 0 {
					return nil, fmt.Errorf("bytes of the part %d come twice: %w", i+1, vfs.ErrInval)
				}
				c = &piece{make([]byte, m.length(i)), m.length(i)}
				m.open[i] = c
			}
			return c, ctx.Err()
		}
		moved := m.moved
		m.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// remember keeps the first and the last bytes of the file.
func (m *parted) remember(p []byte, at int64) {
	if at >= edge && at+int64(len(p)) <= m.size-edge {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	overlap(m.head, 0, p, at)
	overlap(m.tail, m.size-edge, p, at)
}

// overlap copies what p, at the place at, has of dst, at the place start.
func overlap(dst []byte, start int64, p []byte, at int64) {
	if at < start {
		p, at = p[min(start-at, int64(len(p))):], start
	}
	if at-start < int64(len(dst)) {
		copy(dst[at-start:], p)
	}
}

// filled counts bytes of a part, and reports whether it is complete.
func (m *parted) filled(c *piece, n int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	c.left -= n
	return c.left == 0
}

// put puts a part, unless it is there.
func (m *parted) put(ctx context.Context, i int, c *piece) error {
	sum := object.SumOf(c.content)
	p, ok := m.there[i+1]
	switch {
	case m.isMade:
		p = bucket.Part{Number: i + 1, Sum: sum}
	case !ok || !isPart(&p, c.content, sum):
		var err error
		if p, err = m.f.c.PutPart(ctx, m.f.root+m.key, m.upload.id, i+1, c.content, sum); err != nil {
			err = fmt.Errorf("put part %d: %w", i+1, told(err, vfs.ErrStale))
			m.settle(func() { m.err = err })
			return err
		}
	}
	m.settle(func() {
		m.done[i] = p
		delete(m.open, i)
		for m.base < len(m.done) && m.done[m.base].Number != 0 {
			m.base++
		}
	})
	return nil
}

// isPart reports whether a part that is there is what would be sent. The ETag of many stores is the MD5.
func isPart(p *bucket.Part, content []byte, sum object.Sum) bool {
	if p.Size != int64(len(content)) || p.Summed {
		return p.Size == int64(len(content)) && p.Sum == sum
	}
	md := md5.Sum(content)
	return strings.Trim(p.ETag, `"`) == hex.EncodeToString(md[:])
}

// settle changes what others wait for.
func (m *parted) settle(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	close(m.moved)
	m.moved = make(chan struct{})
}

// ReadAt implements vfs.File: of the first and the last bytes.
func (m *parted) ReadAt(ctx context.Context, p []byte, off uint64, post *vfs.Attr) (n int, eof bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ended {
		return 0, false, vfs.ErrInval
	}
	if post != nil {
		*post = vfs.Attr{}
	}
	end, tail := off+uint64(len(p)), uint64(m.size-edge)
	switch {
	case end <= edge:
		return copy(p, m.head[off:]), false, ctx.Err()
	case off >= tail:
		n = copy(p, m.tail[min(off-tail, edge):])
		return n, off+uint64(n) >= uint64(m.size), ctx.Err()
	}
	return 0, false, vfs.ErrNotSupp
}

// Commit implements vfs.File: what is put is stable, and the rest is not before Publish.
func (m *parted) Commit(ctx context.Context, _, _ uint64, w *vfs.Written) error {
	*w = vfs.Written{Committed: vfs.FileSync}
	return ctx.Err()
}

// Truncate is vfs.ErrNotSupp.
func (m *parted) Truncate(context.Context, uint64) (vfs.WCC, error) {
	return vfs.WCC{}, vfs.ErrNotSupp
}

// Publish implements vfs.Making.
func (m *parted) Publish(ctx context.Context) (vfs.Handle, vfs.Attr, error) {
	m.mu.Lock()
	err, missing := m.err, m.base < len(m.done)
	parts := slices.Clone(m.done)
	m.mu.Unlock()
	if err == nil && missing {
		err = fmt.Errorf("part %d is not complete: %w", m.base+1, vfs.ErrInval)
	}
	switch {
	case err != nil:
	case m.isMade:
		err = m.confirm(ctx, parts)
	default:
		err = m.complete(ctx, parts)
	}
	if err != nil {
		return vfs.Handle{}, vfs.Attr{}, err
	}
	m.mu.Lock()
	m.upload.id = "" // it is an object now
	m.mu.Unlock()
	a := m.f.written(m.key, m.size, &m.attr)
	return m.f.handle(m.key), a, m.f.clear(ctx, m.others)
}

// complete makes the object. If an answer was lost, or the upload is not there any more, as a proxy may have sent the request twice, the
// object says whose it is.
func (m *parted) complete(ctx context.Context, parts []bucket.Part) error {
	full := m.f.root + m.key
	err := m.f.c.EndUpload(ctx, full, m.upload.id, parts)
	if !errors.Is(err, object.ErrUnknownOutcome) && !errors.Is(err, object.ErrNotExist) {
		return told(err, vfs.ErrStale)
	}
	h, there, herr := m.f.head(ctx, m.key)
	switch {
	case herr != nil:
		return fmt.Errorf("%w: %w", vfs.ErrUnknownOutcome, herr)
	case there && h.Get(metaPut) == m.upload.number:
		return nil
	}
	return told(err, vfs.ErrStale)
}

// Mark implements vfs.Making.
func (m *parted) Mark() string { return m.upload.String() }

// Keep implements vfs.Making.
func (m *parted) Keep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep = true
}

// Close implements vfs.File.
func (m *parted) Close(ctx context.Context) error {
	m.mu.Lock()
	if m.ended {
		m.mu.Unlock()
		return vfs.ErrInval
	}
	m.ended = true
	abort := m.upload.id != "" && !m.keep
	m.open, m.head, m.tail = nil, nil, nil
	m.mu.Unlock()
	m.f.memory.Release(m.held)
	if abort {
		return told(m.f.c.AbortUpload(ctx, m.f.root+m.key, m.upload.id), vfs.ErrStale)
	}
	return nil
}
