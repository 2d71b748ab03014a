package bucketfs

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/vfs"
)

// place is the page of a listing in which an entry is, by what leads to it.
type place struct {
	token string
	after string   // the last key before it
	held  []string // as lister has them
}

// lister is a listing under way.
type lister struct {
	f    *FS
	dir  string
	want vfs.Mask
	place
}

// item is a key of a listing.
type item struct {
	key     string // below the root
	name    string
	foreign string         // what to say of it; "": it is not foreign
	listed  *bucket.Listed // nil: it is a prefix
	next    vfs.Pos
	attr    vfs.Attr
	gone    bool
}

// posOf is the place behind a key. It means the same in every listing of the directory.
func posOf(key string) vfs.Pos {
	sum := sha256.Sum256([]byte(key))
	return vfs.Pos{Cookie: binary.BigEndian.Uint64(sum[:]) | 1, Verf: vfs.Verifier(sum[8:])}
}

// ReadDir implements vfs.FS. A place is found again by its key's hash: in the page that it was in, if that is known still, else from
// the start. If the entry is not there any more, that is vfs.ErrBadCookie.
func (f *FS) ReadDir(ctx context.Context, dir vfs.Handle, from vfs.Pos, want vfs.Mask, _ uint32) iter.Seq2[*vfs.Entry, error] {
	return func(yield func(*vfs.Entry, error) bool) {
		key, err := f.dir(&dir)
		if err != nil {
			yield(nil, err)
			return
		}
		l := lister{f: f, dir: key, want: want}
		if from.Cookie != 0 {
			l.place, _ = f.places.get(from)
		}
		if err := l.run(ctx, from, yield); err != nil {
			yield(nil, err)
		}
	}
}

// run yields the entries behind a place.
func (l *lister) run(ctx context.Context, from vfs.Pos, yield func(*vfs.Entry, error) bool) error {
	skip, empty := from.Cookie != 0, 0
	for {
		at := l.place
		p, err := l.f.c.List(ctx, bucket.ListOptions{Prefix: l.f.root + l.dir, Dirs: true, After: at.after, Token: at.token, Limit: page})
		if err != nil {
			return told(err, vfs.ErrStale)
		}
		items := l.items(p)
		if skip {
			if i := slices.IndexFunc(items, func(i item) bool { return i.next == from }); i >= 0 {
				items, skip = items[i+1:], false
			} else {
				items = nil
			}
		}
		more, err := l.yield(ctx, items, at, yield)
		if !more || err != nil {
			return err
		}
		if len(p.Objects)+len(p.Dirs) > 0 {
			empty = 0
		} else if empty++; p.More && empty > bucket.MaxEmpty {
			return told(l.f.c.Foreign(fmt.Sprintf("%d pages of a listing have no object, and there are more", empty)), vfs.ErrStale)
		}
		if p.More {
			l.token = p.Token
			continue
		}
		if skip {
			return vfs.ErrBadCookie
		}
		return nil
	}
}

// items are those of a page, in order of their keys.
func (l *lister) items(p *bucket.Page) []item {
	all := make([]item, 0, len(p.Objects)+len(p.Dirs))
	for i := range p.Objects {
		all = append(all, item{key: p.Objects[i].Name, listed: &p.Objects[i]})
	}
	for _, name := range p.Dirs {
		all = append(all, item{key: name})
	}
	slices.SortFunc(all, func(a, b item) int { return strings.Compare(a.key, b.key) })
	keep := all[:0]
	for _, i := range all {
		l.after = i.key
		i.key = strings.TrimPrefix(i.key, l.f.root)
		if i.key == l.dir && i.listed != nil && i.listed.Size == 0 {
			continue // the directory's own; one with bytes is foreign, as no directory has these
		}
		i.next = posOf(i.key)
		var ok bool
		holder := ""
		if i.name, ok = nameOf(l.dir, i.key); ok {
			holder = l.holder(i.key)
		}
		if !ok || holder != "" {
			i.foreign = l.f.foreign(l.dir, i.key, holder)
		}
		keep = append(keep, i)
	}
	return keep
}

// holder is the key of the object that a name belongs to, if one has come before. In order of keys NAME comes before NAME.rclonelink, and that
// before NAME/, but others may come between. These begin with NAME as well: so few names have to be held at a time.
func (l *lister) holder(key string) string {
	stem := func(key string) string { return l.dir + segmentOf(l.dir, key) }
	for len(l.held) > 0 && !strings.HasPrefix(key, stem(l.held[len(l.held)-1])) {
		l.held = l.held[:len(l.held)-1]
	}
	if i := slices.IndexFunc(l.held, func(held string) bool { return stem(held) == stem(key) }); i >= 0 {
		return l.held[i]
	}
	if kindOf(key) != isDir {
		l.held = append(slices.Clip(l.held), key)
	}
	return ""
}

// yield yields items, of the page at. more is false if the iteration has ended.
func (l *lister) yield(ctx context.Context, items []item, at place, yield func(*vfs.Entry, error) bool) (more bool, err error) {
	for len(items) > 0 {
		some := items[:min(aheadAttrs, len(items))]
		items = items[len(some):]
		if err := l.ask(ctx, some); err != nil {
			return false, err
		}
		for i := range some {
			e := l.entry(&some[i])
			if e == nil {
				continue
			}
			if !yield(e, nil) {
				l.f.places.put(e.Next, at)
				return false, nil
			}
		}
	}
	return true, ctx.Err()
}

// free are the attributes that a listing has.
const free = vfs.MaskType | vfs.MaskNlink | vfs.MaskFileID | vfs.MaskFSID

// ask asks for the attributes of items, all at once, if they are wanted. Of what cannot be asked for, they are missing.
func (l *lister) ask(ctx context.Context, items []item) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	const has = free | vfs.MaskSize | vfs.MaskUsed
	var all sync.WaitGroup
	for i := range items {
		it := &items[i]
		if it.foreign != "" {
			continue
		}
		if it.listed != nil {
			it.attr = l.f.bare(it.key, it.listed.Size, it.listed.Mod)
			it.attr.Valid = has
		} else {
			it.attr = l.f.implicit(it.key)
			it.attr.Valid = free
		}
		if l.want&^(has|vfs.MaskHandle) == 0 {
			continue
		}
		all.Go(func() {
			switch a, err := l.f.listedAttr(ctx, it); {
			case err == nil:
				it.attr = a
			case errors.Is(err, vfs.ErrNoEnt):
				it.gone = true
			}
		})
	}
	all.Wait()
	return ctx.Err()
}

// listedAttr are the attributes of an item.
func (f *FS) listedAttr(ctx context.Context, it *item) (vfs.Attr, error) {
	if it.listed != nil {
		return f.attr(ctx, it.key)
	}
	h, ok, err := f.head(ctx, it.key)
	if err != nil || !ok {
		return f.implicit(it.key), err
	}
	return f.described(it.key, h, h.Get("Content-Length"))
}

// entry is an item as a listing has it; nil: it is gone.
func (l *lister) entry(it *item) *vfs.Entry {
	switch {
	case it.gone:
		return nil
	case it.foreign != "":
		return &vfs.Entry{Name: []byte("/" + strings.TrimPrefix(it.key, l.dir)), Next: it.next, Foreign: it.foreign}
	}
	e := &vfs.Entry{Name: []byte(it.name), FileID: it.attr.FileID, Next: it.next, Attr: it.attr}
	if l.want&vfs.MaskHandle != 0 {
		e.Handle = l.f.handle(it.key)
	}
	return e
}
