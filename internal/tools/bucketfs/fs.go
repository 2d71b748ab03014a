package bucketfs

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/vfs"
)

// Options say which part of a bucket is a file system.
type Options struct {
	// Root are the names of the directory that becomes the root, which may not be there. Each is one that vfs.CheckName takes.
	Root []string
	// UID and GID own what has no owner in its metadata.
	UID, GID uint32
	// Owns says that they are this process's: what is made, and is not given another owner, gets them into its metadata.
	Owns bool
}

// FS is a part of a bucket as a file system. It asks nobody for rights: what the credentials may do is done, for every caller.
type FS struct {
	vfs.Unimplemented
	c    *bucket.Client
	o    Options
	root string // of all keys; "", or a slash ends it
	fsid [2]uint64

	long   *table[[hashLen]byte, string] // keys that are no handles
	places *table[vfs.Pos, place]        // of listings that were broken off
	fresh  fresh
	memory *semaphore.Weighted // of maxMemory bytes

	whole, part int64 // maxWhole and partSize; tests have them smaller
}

// New makes a file system of a part of a bucket. It asks nothing. Close closes c.
func New(c *bucket.Client, o Options) (*FS, error) {
	f := &FS{c: c, o: o, whole: maxWhole, part: partSize, long: newTable[[hashLen]byte, string](maxTable), places: newTable[vfs.Pos, place](maxPlaces)}
	for _, name := range o.Root {
		if err := vfs.CheckName(name); err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		f.root = keyOf(f.root, name, isDir)
	}
	if len(f.root) > maxKey {
		return nil, tooLong(f.root)
	}
	sum := sha256.Sum256([]byte(c.Store() + "/" + c.Bucket()))
	f.fsid = [2]uint64{binary.BigEndian.Uint64(sum[:]), binary.BigEndian.Uint64(sum[8:])}
	f.memory, f.fresh.dirs = semaphore.NewWeighted(maxMemory), newTable[string, struct{}](maxNew)
	return f, nil
}

// tooLong is the error of a key that S3 does not take.
func tooLong(key string) error {
	return fmt.Errorf("its key has %d bytes, and S3 takes %d: %w", len(key), maxKey, vfs.ErrNameTooLong)
}

// As implements vfs.FS: all callers see the same.
func (f *FS) As(*vfs.Caller) vfs.FS { return f }

// Close implements vfs.Closer.
func (f *FS) Close() error {
	f.c.Close()
	return nil
}

// Root implements vfs.FS. The root is always there.
func (f *FS) Root(ctx context.Context) (vfs.Handle, vfs.Attr, error) {
	a, err := f.attr(ctx, "")
	return f.handle(""), a, err
}

// Try asks for one object, to see whether the bucket is there and the credentials are right.
func (f *FS) Try(ctx context.Context) error {
	_, err := f.holds(ctx, "")
	return err
}

// Above yields the attributes of the directories above the root, from the nearest up, as far as they can be told without a request.
func (f *FS) Above(yield func(vfs.Attr) bool) {
	for dir := f.root; dir != ""; {
		dir = above(dir)
		up := FS{o: f.o, fsid: f.fsid, root: dir}
		if !yield(up.implicit("")) {
			return
		}
	}
}

// Info implements vfs.FS.
func (f *FS) Info(ctx context.Context, h vfs.Handle, want vfs.InfoMask) (vfs.Info, error) {
	if _, err := f.key(&h); err != nil {
		return vfs.Info{}, err
	}
	i, err := f.Unimplemented.Info(ctx, h, want)
	i.HasSymlinks, i.CanSetTime, i.MaxFileSize = true, true, maxFile
	i.TimeDelta = time.Nanosecond
	return i, err
}

// Access grants what is asked for: what the credentials may not do, the bucket refuses.
func (f *FS) Access(ctx context.Context, h vfs.Handle, want vfs.Access) (vfs.Access, vfs.Attr, error) {
	key, err := f.key(&h)
	if err != nil {
		return 0, vfs.Attr{}, err
	}
	if kindOf(key) == isDir {
		want &^= vfs.AccessExecute
	} else {
		want &^= vfs.AccessLookup | vfs.AccessDelete
	}
	return want, vfs.Attr{}, ctx.Err()
}

// id is the number of a key of this file system. It is the same wherever the root is.
func (f *FS) id(key string) uint64 {
	sum := sha256.Sum256([]byte(f.root + key))
	return binary.BigEndian.Uint64(sum[:])
}

// bare are the attributes of an object of which only that is known.
func (f *FS) bare(key string, size int64, mod time.Time) vfs.Attr {
	k := kindOf(key)
	a := vfs.Attr{
		Valid: vfs.MaskV3, Type: types[k], Mode: defaultModes[k], Nlink: 1, UID: f.o.UID, GID: f.o.GID,
		Size: uint64(size), Used: uint64(size), FileID: f.id(key), FSID: f.fsid,
		Mtime: mod, Ctime: mod.Truncate(time.Second),
	}
	if k == isDir {
		a.Nlink, a.Size, a.Used = 2, 0, 0
	}
	a.Atime, a.Change = a.Mtime, uint64(a.Ctime.UnixNano())
	return a
}

// owned gives a, of what is being made, the owner that it is not given.
func (f *FS) owned(a *vfs.Attr) {
	if !f.o.Owns {
		return
	}
	if !a.Has(vfs.MaskUID) {
		a.UID = f.o.UID
	}
	if !a.Has(vfs.MaskGID) {
		a.GID = f.o.GID
	}
	a.Valid |= vfs.MaskUID | vfs.MaskGID
}

// unknownTime is when a directory without an object was changed.
var unknownTime = time.Unix(0, 0)

// implicit are the attributes of a directory without an object.
func (f *FS) implicit(key string) vfs.Attr { return f.bare(key, 0, unknownTime) }

// above is the key of the directory that has key in it.
func above(key string) string {
	key = strings.TrimSuffix(key, "/")
	return key[:strings.LastIndexByte(key, '/')+1]
}
