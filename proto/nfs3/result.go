package nfs3

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
