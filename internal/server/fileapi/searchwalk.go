package fileapi

import (
	"bytes"
	"context"

	"connectrpc.com/connect"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// searchDir is a directory on the way to the one that is listed. Of its entries a page is in memory: while they are
// searched, or sent, no listing is open.
type searchDir struct {
	h      vfs.Handle
	path   string
	chosen any // of the filter
	pos    vfs.Pos
	page   []vfs.Entry
	next   int // of page
	last   bool
	memory int // of page, in bytes
}

// tree searches what lies below a directory, depth first. Links are not followed: they are no files.
func (r *searching) tree(ctx context.Context, path string, h vfs.Handle) error {
	for stack := []*searchDir{{h: h, path: path}}; len(stack) > 0 && r.ended == 0; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		d := stack[len(stack)-1]
		if d.next == len(d.page) {
			if err := r.list(ctx, d); err != nil {
				if err = r.failed(ctx, d.path, err); err != nil {
					return err
				}
				d.last = true // what was listed before is searched
			}
			if len(d.page) == 0 && d.last {
				stack = stack[:len(stack)-1]
			}
			continue
		}
		d.next++
		sub, err := r.entry(ctx, d, &d.page[d.next-1], len(stack))
		if err != nil {
			return err
		}
		if sub != nil {
			stack = append(stack, sub)
		}
	}
	return nil
}

// list reads the next page of a directory; it is empty at the end.
func (r *searching) list(ctx context.Context, d *searchDir) error {
	r.listed -= d.memory
	clear(d.page)
	d.page, d.next, d.memory = d.page[:0], 0, 0
	if err := r.pause(); err != nil || d.last {
		return err
	}
	for e, err := range r.p.ReadDir(ctx, d.h, d.pos, searchWants|vfs.MaskHandle, pageBytes) {
		if err != nil {
			return err
		}
		if r.entries == r.s.o.Limits.SearchEntries {
			r.ended = pb.SearchEnd_SEARCH_END_ENTRIES
			return nil
		}
		r.entries++
		d.pos = e.Next
		if reserved(string(e.Name)) {
			continue
		}
		kept := *e
		kept.Name = bytes.Clone(e.Name)
		d.page = append(d.page, kept)
		d.memory += searchEntry + len(kept.Name)
		r.listed += searchEntry + len(kept.Name)
		if len(d.page) == searchPage {
			return r.holdListed()
		}
	}
	d.last = true
	return r.holdListed()
}

// holdListed counts the memory of all pages. What is freed is used again, and not given back before the call ends.
func (r *searching) holdListed() error {
	if r.listed <= r.held {
		return nil
	}
	more := r.listed - r.held
	r.held = r.listed
	return r.call.hold(more)
}

// entry searches what has a name. A directory it returns, unless that is left out.
func (r *searching) entry(ctx context.Context, d *searchDir, e *vfs.Entry, depth int) (*searchDir, error) {
	path := joined(d.path, e.Name)
	if err := r.look(ctx, d.h, e); err != nil {
		return nil, r.failed(ctx, path, err)
	}
	chosen, ok := r.plan.filter.Choose(d.chosen, e)
	switch {
	case !ok:
		return nil, nil
	case e.Attr.Type == vfs.TypeReg:
		return nil, r.file(ctx, path, e.Handle, e.Attr.Size)
	case e.Attr.Type != vfs.TypeDir:
		return nil, nil
	case depth == searchDepth:
		return nil, r.failed(ctx, path, refuse(connect.CodeOutOfRange, "it lies deeper than %d directories, and is not searched", searchDepth))
	}
	return &searchDir{h: e.Handle, path: path, chosen: chosen}, nil
}

// searchWants are the attributes that a search looks at.
const searchWants = vfs.MaskType | vfs.MaskSize

// look asks for what a listing has left out of an entry.
func (r *searching) look(ctx context.Context, dir vfs.Handle, e *vfs.Entry) (err error) {
	if e.Handle.IsZero() {
		if e.Handle, e.Attr, _, err = r.p.Lookup(ctx, dir, string(e.Name)); err != nil {
			return err
		}
	}
	if !e.Attr.Has(searchWants) {
		e.Attr, err = r.p.GetAttr(ctx, e.Handle, searchWants)
	}
	return err
}
