package export

import (
	"context"
	"fmt"
	"hash/fnv"
	"path"
	"strings"

	"github.com/nfsbox/nfsbox/vfs"
)

// MaxExports bounds a table. It fits the answer to MOUNT's EXPORT into one
// record; more is an error of NewTable.
const MaxExports = 4096

// Export is one file system under one path.
type Export struct {
	// Path is what clients mount, absolute and clean: "/", "/home".
	Path string
	// FS is what they get. Its root is the export's.
	FS vfs.FS
	// ID tells this export's handles from others'. It is part of every handle
	// and must be the same after a restart. 0 derives it from Path.
	ID uint32
	// ReadOnly refuses every change with vfs.ErrROFS.
	ReadOnly bool
}

// Table is the exports of a server. It is not changed after NewTable; all
// methods may be called concurrently.
type Table struct {
	key     Key
	exports []Export
	byID    map[uint32]*Export
}

// NewTable checks the exports and makes a table of them. key seals the handles.
func NewTable(key Key, exports ...Export) (*Table, error) {
	if len(exports) == 0 || len(exports) > MaxExports {
		return nil, fmt.Errorf("export: %d exports; a table has 1 to %d", len(exports), MaxExports)
	}
	t := &Table{key: key, exports: exports, byID: make(map[uint32]*Export, len(exports))}
	for i := range t.exports {
		e := &t.exports[i]
		if !strings.HasPrefix(e.Path, "/") || path.Clean(e.Path) != e.Path || strings.ContainsRune(e.Path, 0) ||
			len(e.Path) > maxExportPath {
			return nil, fmt.Errorf("export: %q: the path must be absolute, without \".\", \"..\" and double slashes, and at most %d bytes", e.Path, maxExportPath)
		}
		if e.ID == 0 {
			e.ID = idOf(e.Path)
		}
		if o := t.byID[e.ID]; o != nil {
			return nil, fmt.Errorf("export: %q and %q have the same number %d", o.Path, e.Path, e.ID)
		}
		t.byID[e.ID] = e
	}
	return t, nil
}

// maxExportPath bounds an export's path: MNTPATHLEN of RFC 1813, appendix I.
const maxExportPath = 1024

// idOf derives a number from a path that stays the same as long as the path.
func idOf(p string) uint32 {
	h := fnv.New32a()
	// A hash.Hash never fails to write.
	_, _ = h.Write([]byte(p))
	return max(h.Sum32(), 1)
}

// Exports returns the exports in the order given. The slice is the table's.
func (t *Table) Exports() []Export { return t.exports }

// Mount returns the handle and attributes of the directory that p names, seen
// by c: an export, or a directory below one. The empty path is "/", and "/"
// stands for the only export where there is one alone that has another path.
// No such path is vfs.ErrNoEnt; what is not a directory is vfs.ErrNotDir.
// Symbolic links within p are not followed: they are the client's to resolve.
func (t *Table) Mount(ctx context.Context, c *vfs.Caller, p string) (vfs.Handle, vfs.Attr, error) {
	e, rest, err := t.find(p)
	if err != nil {
		return vfs.Handle{}, vfs.Attr{}, err
	}
	fs := e.FS.As(c)
	h, attr, err := fs.Root(ctx)
	if err != nil {
		return vfs.Handle{}, vfs.Attr{}, err
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part == "" {
			continue
		}
		if h, attr, _, err = fs.Lookup(ctx, h, part); err != nil {
			return vfs.Handle{}, vfs.Attr{}, err
		}
		if !attr.Has(vfs.MaskType) {
			if attr, err = fs.GetAttr(ctx, h, vfs.MaskV3); err != nil {
				return vfs.Handle{}, vfs.Attr{}, err
			}
		}
		if attr.Type != vfs.TypeDir {
			return vfs.Handle{}, vfs.Attr{}, vfs.ErrNotDir
		}
	}
	sealed, err := t.seal(e.ID, &h)
	return sealed, attr, err
}

// find returns the export with the longest path that p lies under, and what of
// p is below it.
func (t *Table) find(p string) (*Export, string, error) {
	if len(p) > maxExportPath {
		return nil, "", vfs.ErrNameTooLong
	}
	if strings.ContainsRune(p, 0) {
		return nil, "", vfs.ErrInval
	}
	p = path.Clean("/" + p)
	var best *Export
	for i := range t.exports {
		e := &t.exports[i]
		if (best == nil || len(e.Path) > len(best.Path)) && under(p, e.Path) {
			best = e
		}
	}
	switch {
	case best != nil:
		return best, strings.TrimPrefix(p, best.Path), nil
	case p == "/" && len(t.exports) == 1:
		return &t.exports[0], "", nil
	}
	return nil, "", vfs.ErrNoEnt
}

// under reports whether the clean path p is dir or below it.
func under(p, dir string) bool {
	return dir == "/" || p == dir || strings.HasPrefix(p, dir) && p[len(dir)] == '/'
}
