package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nfsbox/nfsbox/internal/job"
	"github.com/nfsbox/nfsbox/internal/place"
	"github.com/nfsbox/nfsbox/vfs"
)

// destination is where the copies of a command go. It is settled before the first
// of them is made, by the rules of cp(1).
type destination struct {
	*place.Place
	inside bool // DEST is a directory, and receives each SOURCE under its own name
	dir    vfs.Handle
	name   string    // what DEST becomes in dir, if not inside; "" if it is a root
	absent bool      // nothing has the name DEST
	there  job.There // what has it
	record *os.Root  // that has yet to be told of inside; else nil
	made   *job.Made // if several sources go into one directory
	// taken are the names in DEST that sources of this command have got, each with
	// its source.
	taken map[string]string
}

// destine settles where copies to dst go, or refuses. A job that goes on keeps what
// was decided when it began, though the copy exists by now.
func (c *cpCmd) destine(ctx context.Context, dst *place.Place, record *os.Root) (*destination, error) {
	at, err := dst.Resolve(ctx, false)
	var there job.There
	if err == nil {
		there = job.There{Handle: at.Handle, Attr: at.Attr}
	}
	isLink := err == nil && at.Attr.Type == vfs.TypeSymlink
	if isLink {
		at, err = dst.Resolve(ctx, true)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	d := &destination{Place: dst, absent: err != nil, there: there, record: record, taken: make(map[string]string)}
	isDir := err == nil && at.Attr.Type == vfs.TypeDir
	inside, known, err := remembered(record)
	if err != nil {
		return nil, &exitError{status: exitUsage, err: err}
	}
	if d.inside = isDir; known {
		d.inside, d.record = inside, nil
	}
	if d.inside && !isDir {
		return nil, gone(dst.Text, record)
	}
	if err := c.refuseDest(d, isDir, isLink); err != nil {
		return nil, &exitError{status: exitUsage, err: err}
	}
	if d.inside {
		d.dir = at.Handle
		if len(c.Places) > 2 {
			d.made = new(job.Made)
		}
		return d, nil
	}
	d.dir, d.name, err = dst.Parent(ctx)
	return d, err
}

// refuseDest refuses what cp(1) refuses whatever the sources are.
func (c *cpCmd) refuseDest(d *destination, isDir, isLink bool) error {
	switch {
	case isDir:
	case len(c.Places) > 2 && d.absent:
		return fmt.Errorf("%s does not exist; several SOURCEs need a directory to go to", d.Text)
	case len(c.Places) > 2:
		return fmt.Errorf("%s is not a directory; several SOURCEs need one to go to", d.Text)
	case d.absent && isLink:
		return fmt.Errorf("%s is a symbolic link that leads nowhere; nothing is copied through it", d.Text)
	}
	return nil
}

// gone says that the directory that a job copied into is no longer there. Its parent
// is none of the job's business.
func gone(dest string, record *os.Root) error {
	return &exitError{status: exitUnreachable, err: fmt.Errorf(
		"%s was a directory when this job began, and no longer is; nothing has been copied. "+
			"Bring it back and run the same command, or begin anew: mkdir the directory, and first rm -r %s", dest, quoteArg(record.Name()))}
}

// known is what has the name of the copy of a source, if that was looked at: only DEST was,
// and of a directory more is to be known.
func (d *destination) known(src *vfs.Attr) *job.There {
	if d.inside || src.Type == vfs.TypeDir {
		return nil
	}
	return &d.there
}

// settle keeps, for a job, how DEST was understood. Nothing has been refused any more.
func (d *destination) settle() error {
	if d.record == nil {
		return nil
	}
	return remember(d.record, d.inside)
}

// receive gives a source its place: the directory that the copy is made in, and its
// name there. An empty name says that the source's contents go into the directory.
// skip says that the same source has been given before.
func (d *destination) receive(src *place.Place, attr *vfs.Attr) (name string, skip bool, err error) {
	isDir := attr.Type == vfs.TypeDir
	if !d.inside {
		if d.absent && !isDir && place.MeansDir(d.Text) {
			return "", false, fmt.Errorf("%s does not exist, and a %v cannot become a directory", d.Text, attr.Type)
		}
		return d.name, false, d.refuseItself(src, isDir, filepath.Clean(d.Text))
	}
	name = ownName(src)
	was, taken := d.taken[name]
	_, contents := d.taken[""]
	switch {
	case taken && was == jobPlace(src.Text):
		return name, true, nil
	case taken:
		return "", false, fmt.Errorf("%s: will not overwrite what %s has just become in %s", src.Text, was, d.Text)
	case contents || name == "" && len(d.taken) > 0:
		return "", false, fmt.Errorf("%s: the contents of a directory may have the names of other SOURCEs; copy them by a command of their own", src.Text)
	}
	d.taken[name] = jobPlace(src.Text)
	return name, false, d.refuseItself(src, isDir, filepath.Join(d.Text, name))
}

// refuseItself refuses, where both are paths of this host, to copy a directory to a
// path that lies within it, and anything else onto itself. What can be seen only over
// the network, package job finds out.
func (d *destination) refuseItself(src *place.Place, isDir bool, to string) error {
	if place.IsURL(src.Text) || place.IsURL(d.Text) {
		return nil
	}
	from, err := os.Lstat(src.Text)
	if isDir {
		from, err = os.Stat(src.Text)
	}
	if err != nil {
		return place.Reached(err)
	}
	if !isDir {
		return d.refuseSameFile(src.Text, to, from)
	}
	// Symbolic links on the way lead somewhere else than their names stand.
	at, err := filepath.Abs(to)
	if err == nil {
		at, err = filepath.EvalSymlinks(filepath.Dir(at))
	}
	if err != nil {
		return place.Reached(err)
	}
	for last := ""; at != last; last, at = at, filepath.Dir(at) {
		if there, err := os.Stat(at); err == nil && os.SameFile(from, there) {
			return fmt.Errorf("copy %s to %s: %w", src.Text, to, job.ErrIntoItself)
		}
	}
	return nil
}

// refuseSameFile refuses to copy what is no directory onto itself, a link to what it leads
// to, and a file to a link that leads to it.
func (d *destination) refuseSameFile(source, to string, from os.FileInfo) error {
	there, err := os.Lstat(to)
	if err == nil && there.Mode()&fs.ModeSymlink != 0 && (!d.inside || from.Mode()&fs.ModeSymlink == 0) {
		there, err = os.Stat(to) // a link that is DEST stands for its target
	}
	if err != nil {
		return nil // nothing is there, or it leads nowhere
	}
	same := os.SameFile(from, there)
	if !same && from.Mode()&fs.ModeSymlink != 0 && there.Mode()&fs.ModeSymlink == 0 {
		at, err := os.Stat(source)
		same = err == nil && os.SameFile(at, there)
	}
	if same {
		return fmt.Errorf("copy %s to %s: %w", source, to, job.ErrIntoItself)
	}
	return nil
}

// ownName is what a copy of src is called in a directory: "" if its contents go
// into it, as those of a server's root do.
func ownName(src *place.Place) string {
	if place.NamesContents(src.Text) {
		return ""
	}
	return src.Base()
}
