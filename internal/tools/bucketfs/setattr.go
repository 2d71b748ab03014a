package bucketfs

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/vfs"
)

// SetAttr implements vfs.FS, but for sizes. The object is copied onto itself, with other metadata, if it is still what was looked
// at. Atimes are not kept.
func (f *FS) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	key, err := f.key(&h)
	switch {
	case err != nil:
		return vfs.WCC{}, err
	case set.Valid&vfs.MaskSize != 0:
		return vfs.WCC{}, fmt.Errorf("the size of a file in a bucket is not changed: %w", vfs.ErrNotSupp)
	case f.root+key == "":
		return vfs.WCC{}, fmt.Errorf("the bucket itself has no attributes: %w", vfs.ErrNotSupp)
	}
	was, err := f.attrAndHeader(ctx, key)
	if err != nil {
		return vfs.WCC{}, err
	}
	if guard != nil && !guard.Equal(was.attr.Ctime) {
		return vfs.WCC{}, vfs.ErrNotSync
	}
	const kept = vfs.MaskMode | vfs.MaskUID | vfs.MaskGID | vfs.MaskMtime
	if set.Valid&kept == 0 {
		return vfs.WCC{After: was.attr}, nil
	}
	want := was.attr
	if want.Valid = was.said | set.Valid&kept; kindOf(key) != isDir {
		want.Valid |= vfs.MaskMtime // that of the upload moves
	}
	change(&want, set)
	if was.header == nil {
		f.owned(&want) // it is made now
	}
	var a vfs.Attr
	if kindOf(key) == isDir {
		a, err = f.put(ctx, key, nil, &want)
	} else {
		a, err = f.describe(ctx, key, was, &want)
	}
	return vfs.WCC{After: a}, err
}

// known is what an object is.
type known struct {
	attr   vfs.Attr
	said   vfs.Mask // of attr, what its metadata says
	header http.Header
}

// attrAndHeader looks at an object.
func (f *FS) attrAndHeader(ctx context.Context, key string) (k known, err error) {
	h, ok, err := f.head(ctx, key)
	switch {
	case err != nil:
		return k, err
	case !ok && kindOf(key) != isDir:
		return k, vfs.ErrStale
	case !ok:
		k.attr = f.implicit(key)
		return k, nil
	}
	k.header = h
	for name, m := range map[string]vfs.Mask{metaMode: vfs.MaskMode, metaUID: vfs.MaskUID, metaGID: vfs.MaskGID, metaMtime: vfs.MaskMtime} {
		if h.Get(name) != "" {
			k.said |= m
		}
	}
	k.attr, err = f.described(key, h, h.Get("Content-Length"))
	return k, err
}

// stay are the fields of an object's header that a copy has only if they are said again.
var stay = [...]string{
	"Content-Type", "Content-Encoding", "Content-Disposition", "Content-Language", "Cache-Control", "Expires",
	"X-Amz-Storage-Class", "X-Amz-Website-Redirect-Location", "X-Amz-Server-Side-Encryption", "X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id",
}

// describe gives an object other metadata.
func (f *FS) describe(ctx context.Context, key string, was known, want *vfs.Attr) (vfs.Attr, error) {
	if was.attr.Size > maxCopy {
		return vfs.Attr{}, fmt.Errorf("an object of more than %d GiB gets no other metadata: copy it again: %w", maxCopy>>30, vfs.ErrNotSupp)
	}
	q := &bucket.Request{Method: http.MethodPut, Name: f.root + key, Limit: bucket.MaxError, Header: metadata(kindOf(key), want)}
	for name, values := range was.header {
		if strings.HasPrefix(name, "X-Amz-Meta-") && q.Header[name] == "" {
			q.Header[name] = values[0]
		}
	}
	for _, name := range stay {
		if v := was.header.Get(name); v != "" {
			q.Header[name] = v
		}
	}
	q.Header["X-Amz-Copy-Source"] = f.c.Source(f.root + key)
	q.Header["X-Amz-Copy-Source-If-Match"] = was.header.Get("Etag")
	q.Header["X-Amz-Metadata-Directive"] = "REPLACE"
	if err := f.c.Copy(ctx, q); err != nil {
		return vfs.Attr{}, told(err, vfs.ErrStale)
	}
	return f.written(key, int64(was.attr.Size), want), nil
}
