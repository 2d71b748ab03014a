package dirfs

import (
	"context"

	"github.com/nfsbox/nfsbox/vfs"
)

// Access implements vfs.FS. The host decides.
func (f *FS) Access(ctx context.Context, h vfs.Handle, want vfs.Access) (got vfs.Access, a vfs.Attr, err error) {
	if err := f.begin(ctx); err != nil {
		return 0, a, err
	}
	defer f.end()
	x, o, err := f.take(h)
	if err != nil {
		return 0, a, err
	}
	defer f.leave(o.s)
	defer x.close()
	dir := o.st.Type == vfs.TypeDir
	for _, r := range [...]struct {
		may  uint32
		bits vfs.Access
	}{
		{mayRead, vfs.AccessRead},
		{mayWrite, vfs.AccessModify | vfs.AccessExtend | vfs.AccessDelete},
		{mayExec, vfs.AccessLookup | vfs.AccessExecute},
	} {
		bits := r.bits & want & meaningful(o.st.Type)
		if bits == 0 {
			continue
		}
		if r.may == mayWrite && dir {
			r.may |= mayExec // names in a directory can be changed only if it can be searched
		}
		err := fail("access", x.may(r.may))
		if err == nil {
			got |= bits
		} else if s, _ := vfs.StatusOf(err); s != vfs.ErrAccess && s != vfs.ErrPerm && s != vfs.ErrROFS {
			return 0, a, err
		}
	}
	return got, o.st.Attr, nil
}

// Rights as in access(2).
const (
	mayExec  = 1
	mayWrite = 2
	mayRead  = 4
)

// meaningful are the rights that an object of this type can have.
func meaningful(typ vfs.Type) vfs.Access {
	const file = vfs.AccessRead | vfs.AccessModify | vfs.AccessExtend
	switch typ {
	case vfs.TypeDir:
		return file | vfs.AccessLookup | vfs.AccessDelete
	case vfs.TypeReg:
		return file | vfs.AccessExecute
	}
	return file
}
