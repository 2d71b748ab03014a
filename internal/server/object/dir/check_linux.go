package dir

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/server/object/layout"
)

// Check reads every object whole and compares it with both of its checksums, and
// with its key if that is by content. It calls found, on this goroutine, for each object
// that is damaged or cannot be read, and for each file that is not part of the store. The
// store can be used meanwhile: Check takes a place at the gate for every piece that it
// reads, and so gives way to other calls.
//
// err is why Check has ended early. It says nothing about the objects.
func (s *Store) Check(ctx context.Context, found func(Finding)) (c Checked, err error) {
	if err := s.enter(); err != nil {
		return c, err
	}
	defer s.leave()
	b := s.buffers.Get().(*buffer)
	defer s.buffers.Put(b)
	err = s.eachFolder(ctx, ".", func(f *folder) error {
		return s.checkFolder(ctx, f, b, &c, found)
	})
	return c, err
}

// checkFolder checks what is in one directory, batch by batch in the order of
// names.
func (s *Store) checkFolder(ctx context.Context, f *folder, b *buffer, c *Checked, found func(Finding)) error {
	group, isBucket := s.layout.Bucket(layout.Last(f.path))
	for after, more := "", true; more; {
		var names []string
		err := s.gated(ctx, Meta, func() (err error) {
			names, more, err = s.names(f, listBatch, func(name string) bool { return name > after })
			return err
		})
		if err != nil {
			return err
		}
		for _, name := range names {
			after = name
			if temp, _ := s.isTemp(name); temp || f.path == "." && layout.Bare(name) {
				continue
			}
			where := layout.Join(f.path, name)
			switch {
			case isBucket && layout.IsSegment(name) && s.layout.Group(name) == group:
				key := layout.Base(f.path) + name
				err := s.checkObject(ctx, f, name, key, b, c)
				if ctx.Err() != nil || errors.Is(err, object.ErrBusy) {
					return err
				}
				if err != nil {
					c.Damaged++
					found(Finding{Path: where, Key: key, Err: err})
				}
			case isBucket || !s.holdsFolder(f, name):
				c.Strays++
				found(Finding{Path: where, Err: errStray})
			}
		}
	}
	return nil
}

// errStray is the finding about a file that is not part of the store.
var errStray = errors.New("it is not part of the store")

func (s *Store) holdsFolder(f *folder, name string) bool {
	st, err := lstat(f, name)
	if errors.Is(err, unix.ENOENT) {
		return true // take it for one
	}
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR && s.layout.IsFolder(name)
}

// checkObject reads one object. It is nil if the object was removed meanwhile.
func (s *Store) checkObject(ctx context.Context, f *folder, name, key string, b *buffer, c *Checked) (err error) {
	var o *opened
	err = s.gated(ctx, Read, func() (err error) {
		o, err = s.open(f, name, key, false)
		return err
	})
	if errors.Is(err, object.ErrNotExist) {
		return nil
	}
	if err == nil {
		c.Objects++
		err = errors.Join(s.compare(ctx, o, b, c), s.drop(o))
	}
	if errors.Is(err, object.ErrCorrupted) {
		s.counts.corrupted.Add(1)
	}
	return err
}

func (s *Store) compare(ctx context.Context, o *opened, b *buffer, c *Checked) error {
	hash, crc := sha256.New(), uint32(0)
	for off := int64(0); off < o.info.Size; {
		p := b[:min(chunk, o.info.Size-off)]
		err := s.gated(ctx, Read, func() error {
			n, err := readAt(o.fd, p, off)
			if err == nil && n < len(p) {
				err = layout.Damaged("it has become shorter")
			}
			return fail("read", err)
		})
		if err != nil {
			return err
		}
		hash.Write(p)
		crc = layout.CRC(crc, p)
		off += int64(len(p))
		c.Bytes += int64(len(p))
	}
	sum := object.Sum(hash.Sum(nil))
	if sum != o.info.Sum || crc != o.crc {
		return layout.Damaged("its content does not fit its checksum")
	}
	if want, ok := object.ContentSum(o.info.Key); ok && want != sum {
		return layout.Damaged(fmt.Sprintf("its SHA-256 is %v, and not its key", sum))
	}
	return nil
}
