package bucketfs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// Create implements vfs.FS. A file that it makes stays empty: one with contents is made by Make.
func (f *FS) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (h vfs.Handle, a vfs.Attr, wcc vfs.WCC, err error) {
	in, err := f.dir(&dir)
	if err == nil {
		err = errors.Join(ctx.Err(), vfs.CheckName(name), how.Check())
	}
	if err != nil {
		return h, a, wcc, err
	}
	k, content := isDir, ""
	switch {
	case how.Type == vfs.TypeDir:
	case how.Type == vfs.TypeSymlink:
		k, content = isLink, how.Target
	case how.Type == vfs.TypeReg && how.Mode == vfs.CreateGuarded:
		k = isFile
	default:
		return h, a, wcc, fmt.Errorf("a bucket has files, directories and symbolic links alone: %w", vfs.ErrNotSupp)
	}
	if !f.fresh.take(in, name) {
		switch _, _, err := f.find(ctx, in, name); {
		case err == nil:
			return h, a, wcc, vfs.ErrExist
		case !errors.Is(err, vfs.ErrNoEnt):
			return h, a, wcc, err
		}
	}
	a = f.bare("", 0, time.Now())
	a.Valid = vfs.MaskMtime | how.Set.Valid&(vfs.MaskMode|vfs.MaskUID|vfs.MaskGID)
	change(&a, &how.Set)
	f.owned(&a)
	key := keyOf(in, name, k)
	if a, err = f.put(ctx, key, []byte(content), &a); err != nil {
		return h, a, wcc, err
	}
	if k == isDir {
		f.fresh.dirs.put(key, struct{}{})
	}
	return f.handle(key), a, wcc, nil
}

// change makes the changes of set to a.
func change(a *vfs.Attr, set *vfs.SetAttr) {
	if set.Valid&vfs.MaskMode != 0 {
		a.Mode = set.Mode & 0o7777
	}
	if set.Valid&vfs.MaskUID != 0 {
		a.UID = set.UID
	}
	if set.Valid&vfs.MaskGID != 0 {
		a.GID = set.GID
	}
	if set.Valid&vfs.MaskMtime != 0 {
		if a.Mtime = set.Mtime; set.MtimeNow {
			a.Mtime = time.Now()
		}
	}
}

// put puts an object by one request, and returns its attributes. a are those that its metadata has.
func (f *FS) put(ctx context.Context, key string, content []byte, a *vfs.Attr) (vfs.Attr, error) {
	if len(f.root+key) > maxKey {
		return vfs.Attr{}, tooLong(f.root + key)
	}
	k := kindOf(key)
	q := &bucket.Request{
		Method: http.MethodPut, Name: f.root + key, Body: content, Sum: object.SumOf(content), Limit: bucket.MaxError, Header: metadata(k, a),
	}
	q.Header[bucket.SumHeader] = bucket.FormatSum(q.Sum)
	q.Header["Content-Type"] = contentTypes[k]
	got, err := f.c.Do(ctx, q)
	if err != nil {
		return vfs.Attr{}, told(err, vfs.ErrNoEnt)
	}
	if sum, ok := bucket.SumOf(got.Header); ok && sum != q.Sum {
		return vfs.Attr{}, fmt.Errorf("the store has computed the SHA-256 %v, and %v was put: %w", sum, q.Sum, vfs.ErrIO)
	}
	if got.Header.Get("Etag") == "" {
		return vfs.Attr{}, told(f.c.Foreign("a PUT was answered, and without an ETag"), vfs.ErrNoEnt)
	}
	return f.written(key, int64(len(content)), a), nil
}

// contentTypes are those that objects are put with.
var contentTypes = [...]string{isFile: "application/octet-stream", isLink: "text/plain", isDir: "application/x-directory"}

// written are the attributes of an object that was just put, with those of a. Its ctime is not known: the store has the clock.
func (f *FS) written(key string, size int64, a *vfs.Attr) vfs.Attr {
	now := f.bare(key, size, a.Mtime)
	if a.Has(vfs.MaskMode) {
		now.Mode = a.Mode & 0o7777
	}
	if a.Has(vfs.MaskUID) {
		now.UID = a.UID
	}
	if a.Has(vfs.MaskGID) {
		now.GID = a.GID
	}
	now.Valid &^= vfs.MaskCtime | vfs.MaskChange
	return now
}

// Remove implements vfs.FS. A directory that was never made, and has nothing in it any more, is not there.
func (f *FS) Remove(ctx context.Context, dir vfs.Handle, name string, isADir bool) (vfs.WCC, error) {
	in, err := f.dir(&dir)
	if err == nil {
		err = errors.Join(ctx.Err(), vfs.CheckName(name))
	}
	if err != nil {
		return vfs.WCC{}, err
	}
	key, _, err := f.find(ctx, in, name)
	switch {
	case err != nil:
	case isADir && kindOf(key) != isDir:
		err = vfs.ErrNotDir
	case !isADir && kindOf(key) == isDir:
		err = vfs.ErrIsDir
	case isADir:
		err = f.empty(ctx, key)
	}
	if err != nil {
		return vfs.WCC{}, err
	}
	f.fresh.dirs.drop(key)
	return vfs.WCC{}, f.delete(ctx, key)
}

// empty is vfs.ErrNotEmpty if a directory has anything in it, of whatever name, or its own object has bytes.
func (f *FS) empty(ctx context.Context, dir string) error {
	p, err := f.c.List(ctx, bucket.ListOptions{Prefix: f.root + dir, Limit: 2})
	if err != nil {
		return told(err, vfs.ErrNoEnt)
	}
	for i := range p.Objects {
		if o := &p.Objects[i]; o.Name != f.root+dir || o.Size > 0 {
			return vfs.ErrNotEmpty
		}
	}
	return nil
}

// delete deletes an object, if it is there.
func (f *FS) delete(ctx context.Context, key string) error {
	a, err := f.c.Do(ctx, &bucket.Request{Method: http.MethodDelete, Name: f.root + key, Limit: bucket.MaxError})
	switch {
	case errors.Is(err, object.ErrNotExist):
		return nil
	case err != nil:
		return told(err, vfs.ErrNoEnt)
	case a.Status == http.StatusNoContent:
		return nil
	}
	// Some stores answer 200, and so do portals, which have deleted nothing.
	_, there, err := f.head(ctx, key)
	if err == nil && there {
		err = told(f.c.Foreign("a DELETE was answered by 200, and the object is still there"), vfs.ErrNoEnt)
	}
	return err
}
