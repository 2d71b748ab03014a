package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/vfs"
)

// A record knows which directory SOURCE was. If another one has its name when the copy goes on, a
// file system may not be mounted: what is there, perhaps nothing, is not what was to be copied.

// origin identifies the directory that is copied; the zero origin is not known. A directory that
// was made anew on the same file system, and has got its number, counts as the same.
type origin struct {
	FSID   [2]uint64 `json:"fsid"`
	FileID uint64    `json:"fileid"`
	Born   int64     `json:"born"` // nanoseconds since 1970; 0: the file system does not tell
}

// originOf is the origin of a directory.
func originOf(a *vfs.Attr) (o origin) {
	if !a.Has(vfs.MaskFSID | vfs.MaskFileID) {
		return o
	}
	o = origin{FSID: a.FSID, FileID: a.FileID}
	if a.Has(vfs.MaskBtime) {
		o.Born = a.Btime.UnixNano()
	}
	return o
}

// another reports whether now is another directory. A file system may have another number after
// it was mounted again: then the time of birth tells, if there is one.
func (o origin) another(now origin) bool {
	if o == (origin{}) || now == (origin{}) {
		return false
	}
	return o.FileID != now.FileID || o.FSID != now.FSID && o.Born != 0 && now.Born != 0 && o.Born != now.Born
}

// The file in a job's directory that says which directory SOURCE was. A job from before this file
// existed gets one when it is resumed.
const (
	originFile = "source"
	originLine = "nfsbox-source-1 %d %d %d %d\n"
)

// sameSource returns an error if src, a directory, is not the one that a job has copied, unless
// the user says so. It notes which one it is.
func (c *cpCmd) sameSource(record *os.Root, src *place.Place, attr *vfs.Attr) error {
	if record == nil || attr.Type != vfs.TypeDir {
		return nil
	}
	var was origin
	text, err := job.ReadSmall(record, originFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return refused(fmt.Errorf("--job: %w", err))
	}
	if n, _ := fmt.Sscanf(string(text), originLine, &was.FSID[0], &was.FSID[1], &was.FileID, &was.Born); n != 4 {
		was = origin{}
	}
	now := originOf(attr)
	switch {
	case was.another(now) && !c.OtherSource:
		return otherSource(src.Text, "bring it back and run the same command, or copy what is there now with --other-source")
	case was == now:
		return nil
	}
	if err := writeSynced(record, originFile, fmt.Sprintf(originLine, now.FSID[0], now.FSID[1], now.FileID, now.Born)); err != nil {
		return refused(fmt.Errorf("--job: %w", err))
	}
	return nil
}

// otherSource says that a copy does not go on, as SOURCE is another directory.
func otherSource(source, advice string) error {
	return &exitError{status: exitUnreachable, err: fmt.Errorf(
		"%s is not the directory that it was when this copy began; a file system may not be mounted there. Nothing has been copied: %s", source, advice)}
}
