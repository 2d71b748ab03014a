package main

import (
	"fmt"

	"github.com/nfsbox/nfsbox/internal/tools/jobs"
	"github.com/nfsbox/nfsbox/vfs"
)

// A record knows which directory SOURCE was. If another one has its name when the copy goes on, a
// file system may not be mounted. What is there, perhaps nothing, is not what was to be copied then.

// originOf is the origin of a directory.
func originOf(a *vfs.Attr) (o jobs.Origin) {
	if !a.Has(vfs.MaskFSID | vfs.MaskFileID) {
		return o
	}
	o = jobs.Origin{FSID: a.FSID, FileID: a.FileID}
	if a.Has(vfs.MaskBtime) {
		o.Born = a.Btime.UnixNano()
	}
	return o
}

// otherSource says that a copy does not go on, as SOURCE is another directory.
func otherSource(source, advice string) error {
	return &exitError{status: exitUnreachable, err: fmt.Errorf(
		"%s is not the directory that it was when this copy began; a file system may not be mounted there. Nothing has been copied: %s", source, advice)}
}
