package bucketfs

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// head asks for an object. ok is false if there is none.
func (f *FS) head(ctx context.Context, key string) (h http.Header, ok bool, err error) {
	a, err := f.c.Do(ctx, &bucket.Request{Method: http.MethodHead, Name: f.root + key})
	if errors.Is(err, object.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, told(err, vfs.ErrNoEnt)
	}
	return a.Header, true, nil
}

// refusesLink reports whether err may say that a store which keeps files cannot have so long a name as a link's key would be. The answer to
// a HEAD has no other words.
func refusesLink(err error, key string) bool {
	r, refused := errors.AsType[*bucket.Refusal](err)
	return refused && r.Status == http.StatusBadRequest && kindOf(key) == isLink && len(key)-len(above(key)) > vfs.MaxName
}

// described are the attributes of an object of which an answer has the header.
func (f *FS) described(key string, h http.Header, length string) (vfs.Attr, error) {
	size, err := bucket.ParseSize(length)
	mod, terr := http.ParseTime(h.Get("Last-Modified"))
	if err != nil || terr != nil || h.Get("Etag") == "" {
		return vfs.Attr{}, told(f.c.Foreign("the answer lacks length, time or ETag of an object"), vfs.ErrNoEnt)
	}
	a := f.bare(key, size, mod)
	read(h, &a)
	return a, nil
}

// attr are the attributes of what a key stands for. vfs.ErrNoEnt says that there is nothing.
func (f *FS) attr(ctx context.Context, key string) (vfs.Attr, error) {
	if err := ctx.Err(); err != nil {
		return vfs.Attr{}, err
	}
	if f.root+key == "" {
		return f.implicit(key), nil // the bucket itself
	}
	h, ok, err := f.head(ctx, key)
	if err != nil {
		return vfs.Attr{}, err
	}
	if ok {
		return f.described(key, h, h.Get("Content-Length"))
	}
	if kindOf(key) != isDir {
		return vfs.Attr{}, vfs.ErrNoEnt
	}
	if key != "" {
		full, err := f.holds(ctx, key)
		if err == nil && !full {
			err = vfs.ErrNoEnt
		}
		if err != nil {
			return vfs.Attr{}, err
		}
	}
	return f.implicit(key), nil
}

// holds reports whether any key begins with that of a directory.
func (f *FS) holds(ctx context.Context, dir string) (bool, error) {
	p, err := f.c.List(ctx, bucket.ListOptions{Prefix: f.root + dir, Limit: 1})
	if err != nil {
		return false, told(err, vfs.ErrNoEnt)
	}
	return len(p.Objects) > 0, nil
}

// GetAttr implements vfs.FS.
func (f *FS) GetAttr(ctx context.Context, h vfs.Handle, _ vfs.Mask) (vfs.Attr, error) {
	key, err := f.key(&h)
	if err != nil {
		return vfs.Attr{}, err
	}
	a, err := f.attr(ctx, key)
	if errors.Is(err, vfs.ErrNoEnt) {
		err = vfs.ErrStale
	}
	return a, err
}

// Lookup implements vfs.FS.
func (f *FS) Lookup(ctx context.Context, dir vfs.Handle, name string) (h vfs.Handle, a, dirAttr vfs.Attr, err error) {
	in, err := f.dir(&dir)
	if err != nil {
		return h, a, dirAttr, err
	}
	if name == ".." {
		up := above(in)
		a, err = f.attr(ctx, up)
		return f.handle(up), a, dirAttr, err
	}
	if err := vfs.CheckName(name); err != nil {
		return h, a, dirAttr, err
	}
	key, a, err := f.find(ctx, in, name)
	if err != nil {
		return h, a, dirAttr, err
	}
	return f.handle(key), a, dirAttr, nil
}

// find is what a name stands for: a file goes before a link, and a link before a directory.
func (f *FS) find(ctx context.Context, dir, name string) (key string, a vfs.Attr, err error) {
	for _, k := range [...]kind{isFile, isLink, isDir} {
		if key = keyOf(dir, name, k); len(f.root+key) > maxKey {
			continue
		}
		a, err = f.attr(ctx, key)
		if !errors.Is(err, vfs.ErrNoEnt) && !refusesLink(err, key) {
			return key, a, err
		}
	}
	return "", vfs.Attr{}, vfs.ErrNoEnt
}

// Readlink implements vfs.FS.
func (f *FS) Readlink(ctx context.Context, h vfs.Handle) (string, vfs.Attr, error) {
	key, err := f.key(&h)
	switch {
	case err != nil:
		return "", vfs.Attr{}, err
	case kindOf(key) != isLink:
		return "", vfs.Attr{}, vfs.ErrInval
	}
	a, err := f.c.Do(ctx, &bucket.Request{Method: http.MethodGet, Name: f.root + key, Limit: maxTarget})
	if err != nil {
		return "", vfs.Attr{}, told(err, vfs.ErrStale)
	}
	attr, err := f.described(key, a.Header, strconv.Itoa(len(a.Body)))
	if err != nil {
		return "", vfs.Attr{}, err
	}
	target := string(a.Body)
	if target == "" || strings.Contains(target, "\x00") {
		return "", attr, vfs.ErrInval
	}
	return target, attr, nil
}
