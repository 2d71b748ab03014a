package export

import "github.com/nfsbox/nfsbox/vfs"

// At calls f with the export that a sealed handle is of: its path, its file system, and the
// file system's own handle. While f runs, [Table.Drain] waits. At reports whether it called
// f: the handle is one of ours. It judges no caller, so f is to tell the operator alone.
func (t *Table) At(sealed vfs.Handle, f func(path string, fs vfs.FS, h vfs.Handle)) bool {
	st := t.state.Load()
	e, h, err := st.open(&sealed)
	if err != nil {
		return false
	}
	e.users.enter(atShard)
	defer e.users.leave(t, atShard)
	if t.state.Load() != st {
		return false // the exports have just been replaced
	}
	f(e.Path, e.FS, h)
	return true
}

// atShard is where At counts itself. It is for a few calls of many.
const atShard = 0
