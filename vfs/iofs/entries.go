package iofs

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// Entry is a name in a directory, with what the listing said of it. It is a
// fs.DirEntry.
type Entry struct {
	info info
	next vfs.Pos
}

var _ fs.DirEntry = (*Entry)(nil)

// Name is the name, quoted if it is not UTF-8.
func (e *Entry) Name() string { return e.info.name }

// IsDir reports whether the entry is a directory; a link to one is none.
func (e *Entry) IsDir() bool { return e.info.IsDir() }

// Type is the type alone.
func (e *Entry) Type() fs.FileMode { return e.info.Mode().Type() }

// Info describes the entry as the listing did; it makes no call.
func (e *Entry) Info() (fs.FileInfo, error) { return e.info, nil }

// Next is the place behind the entry, for [FS.EntriesFrom].
func (e *Entry) Next() Pos { return Pos{e.next} }

// String formats the entry by fs.FormatDirEntry.
func (e *Entry) String() string { return fs.FormatDirEntry(e) }

// Pos is a place in the listing of one directory; the zero Pos is its beginning.
// Its text can be stored, and used after a restart of either side.
type Pos struct{ at vfs.Pos }

// MarshalText is the place in 33 characters of ASCII that need no escaping in a
// URL. The beginning is the empty text.
func (p Pos) MarshalText() ([]byte, error) {
	if p == (Pos{}) {
		return []byte{}, nil
	}
	text := hex.AppendEncode(nil, binary.BigEndian.AppendUint64(nil, p.at.Cookie))
	return hex.AppendEncode(append(text, '-'), p.at.Verf[:]), nil
}

// errPos says that a text is no Pos.
var errPos = fmt.Errorf("not a place in a listing: %w", fs.ErrInvalid)

// UnmarshalText takes what MarshalText has made, and nothing else.
func (p *Pos) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*p = Pos{}
		return nil
	}
	const half = 16
	if len(text) != 2*half+1 || text[half] != '-' {
		return errPos
	}
	var cookie [8]byte
	var at vfs.Pos
	_, err := hex.Decode(cookie[:], text[:half])
	_, err2 := hex.Decode(at.Verf[:], text[half+1:])
	at.Cookie = binary.BigEndian.Uint64(cookie[:])
	if err != nil || err2 != nil || (Pos{at}).String() != string(text) {
		return errPos
	}
	*p = Pos{at}
	return nil
}

// String is the text of the place.
func (p Pos) String() string {
	text, _ := p.MarshalText() // which never fails
	return string(text)
}

// Entries lists the directory that name leads to, in the order of the file
// system, and holds at most a page of it. An error ends the listing.
//
// Entries that exist throughout come exactly once, whatever is created and
// removed meanwhile.
func (f *FS) Entries(name string) iter.Seq2[*Entry, error] { return f.EntriesFrom(name, Pos{}) }

// EntriesFrom is Entries from a place on that [Entry.Next] returned for the same
// directory. After an error that Is [vfs.ErrBadCookie] the server does not know the
// place any more, and the listing must begin anew.
func (f *FS) EntriesFrom(name string, from Pos) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		var broken error // the listing, behind what was yielded
		err := f.at("readdir", name, directory, func(w *walker) error {
			begun := false
			for e, err := range f.list(w.here().handle, from.at) {
				switch {
				case err == nil:
				case begun:
					broken = &fs.PathError{Op: "readdir", Path: name, Err: err}
					return nil
				default:
					return err
				}
				begun = true
				if !yield(e, nil) {
					return nil
				}
			}
			return nil
		})
		if err == nil {
			err = broken
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// list lists a directory, and remembers the directories in it. If the listing left out
// attributes, list asks for them, and skips entries that are gone by then. It also
// skips names that vfs.CheckName refuses.
func (f *FS) list(dir vfs.Handle, from vfs.Pos) iter.Seq2[*Entry, error] {
	return func(yield func(*Entry, error) bool) {
		asked := time.Now() // a lower bound: later pages were asked for later
		for e, err := range f.fs.ReadDir(f.ctx, dir, from, vfs.MaskV3|vfs.MaskHandle, 0) {
			if err != nil {
				yield(nil, err)
				return
			}
			name, next := string(e.Name), e.Next
			if vfs.CheckName(name) != nil {
				continue
			}
			at, err := f.complete(dir, name, e, asked)
			if errors.Is(err, vfs.ErrNoEnt) || errors.Is(err, vfs.ErrStale) {
				continue
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(&Entry{info{quote(name), at.attr}, next}, nil) {
				return
			}
		}
	}
}

// complete asks for what the listing left out of an entry.
func (f *FS) complete(dir vfs.Handle, name string, e *vfs.Entry, asked time.Time) (at found, err error) {
	at = found{handle: e.Handle, attr: e.Attr}
	switch {
	case at.handle.IsZero() && !at.attr.Has(needed):
		return f.lookup(dir, name)
	case !at.attr.Has(needed):
		at.attr, err = f.fs.GetAttr(f.ctx, at.handle, vfs.MaskV3)
	}
	if err == nil && at.attr.Type == vfs.TypeDir && !at.handle.IsZero() {
		f.memory.note(dir, name, at.handle, f.who, asked)
	}
	return at, err
}
