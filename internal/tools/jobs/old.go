package jobs

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// The files of earlier programs.
const (
	oldTarget = "target"
	oldInside = "nfsbox-target-1 inside\n"
	oldItself = "nfsbox-target-1 itself\n"

	// After the first line one line each for SOURCE and DEST.
	oldPlaces      = "places"
	oldPlacesLines = "nfsbox-places-1\n%q\n%q\n"

	oldSource     = "source"
	oldSourceLine = "nfsbox-source-1 %d %d %d %d\n"
)

// loadOld reads the files of earlier programs, as far as there are any. Only people read "places":
// one that cannot be read is none.
func (d *Dir) loadOld() error {
	d.Job = Job{}
	switch b, err := Read(d.Root, oldTarget); {
	case err == nil && string(b) == oldInside:
		d.Job.Target = Inside
	case err == nil && string(b) == oldItself:
		d.Job.Target = Itself
	case err == nil:
		return fmt.Errorf("%s: not a file of ours; remove the job's directory to begin anew", filepath.Join(d.Name(), oldTarget))
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	text, err := Read(d.Root, oldSource)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var from Origin
	if n, _ := fmt.Sscanf(string(text), oldSourceLine, &from.FSID[0], &from.FSID[1], &from.FileID, &from.Born); n == 4 {
		d.Job.From = from
	}
	text, err = Read(d.Root, oldPlaces)
	var source, dest string
	if n, _ := fmt.Sscanf(string(text), oldPlacesLines, &source, &dest); err == nil && n == 2 {
		d.Job.Command, d.Job.Source, d.Job.Dest = "cp", Text(source), Text(dest)
	}
	return nil
}
