package nfs3

import (
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// Stat is the status with which every result begins, for code that treats
// the results of all procedures alike.

// Stat is the status of the result.
func (r *GETATTR3res) Stat() *Nfsstat3 { return &r.Status }

// Stat is the status of the result.
func (r *SETATTR3res) Stat() *Nfsstat3 { return &r.Status }

// Stat is the status of the result.
func (r *LOOKUP3res) Stat() *Nfsstat3 { return &r.Status }

// Stat is the status of the result.
func (r *ACCESS3res) Stat() *Nfsstat3 { return &r.Status }

// Stat is the status of the result.
func (r *READLINK3res) Stat() *Nfsstat3 { return &r.Status }

// Stat is the status of the result.
func (r *READ3res) Stat() *Nfsstat3 { return &r.Status }

// Stat is the status of the result.
func (r *WRITE3res) Stat() *Nfsstat3 { return &r.Status }

// Stat is the status of the result.
func (r *CREATE3res) Stat() *Nfsstat3 { return &r.Status }

// Stat is the status of the result.
func (r *MKDIR3res) Stat() *Nfsstat3 { return &r.Status }

// Stat is the status of the result.
func (r *SYMLINK3res) Stat() *Nfsstat3 { return &r.Status }

// Stat is the status of the result.
func (r *MKNOD3res) Stat() *Nfsstat3 { return &r.Status }

// Stat is the status of the result.
func (r *REMOVE3res) Stat() *Nfsstat3 { return &r.Status }

// Stat is the status of the result.
func (r *RMDIR3res) Stat() *Nfsstat3 { return &r.Status }

// Stat is the status of the result.
func (r *RENAME3res) Stat() *Nfsstat3 { return &r.Status }

// Stat is the status of the result.
func (r *LINK3res) Stat() *Nfsstat3 { return &r.Status }

// Stat is the status of the result.
func (r *READDIR3res) Stat() *Nfsstat3 { return &r.Status }

// Stat is the status of the result.
func (r *READDIRPLUS3res) Stat() *Nfsstat3 { return &r.Status }

// Stat is the status of the result.
func (r *FSSTAT3res) Stat() *Nfsstat3 { return &r.Status }

// Stat is the status of the result.
func (r *FSINFO3res) Stat() *Nfsstat3 { return &r.Status }

// Stat is the status of the result.
func (r *PATHCONF3res) Stat() *Nfsstat3 { return &r.Status }

// Stat is the status of the result.
func (r *COMMIT3res) Stat() *Nfsstat3 { return &r.Status }

// Result is what the results of all procedures but NULL have in common: they
// begin with a status.
type Result interface {
	xdr.Unmarshaler
	Stat() *Nfsstat3
}

// Asks is how many bytes of data the READ asks for (see xdr.Asker).
func (a *READ3args) Asks() uint32 { return a.Count }

// Asks is how many bytes the results may have, by section 3.3.16.
func (a *READDIR3args) Asks() uint32 { return a.Count }

// Asks is how many bytes the results may have, by section 3.3.17.
func (a *READDIRPLUS3args) Asks() uint32 { return a.Maxcount }

// Err is s as an error of the contract, nil for NFS3_OK. The numbers are the
// same; one that RFC 1813 does not know stays what it is.
func (s Nfsstat3) Err() error {
	if s == NFS3_OK {
		return nil
	}
	return vfs.Status(s)
}

// StatusOf is the status of err on the wire. ok is false if err has none and became
// NFS3ERR_SERVERFAULT: the server then logs it.
func StatusOf(err error) (s Nfsstat3, ok bool) {
	v, ok := vfs.StatusOf(err)
	if v == vfs.ErrLocked {
		v = vfs.ErrBusy // NFSv3 has no locks, and nothing nearer
	}
	return Nfsstat3(v), ok
}
