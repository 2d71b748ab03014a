package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/vfs"
)

// destination is where a command's copies go. The rules of cp(1) settle it before the first copy
// is made.
type destination struct {
	*place.Place
	inside bool      // DEST is a directory, and receives each SOURCE under its own name
	at     spot      // what DEST names
	leads  *spot     // the target of DEST, if it is a symbolic link to something other than a directory
	broken error     // why such a link leads nowhere
	linked bool      // DEST is a symbolic link to a directory
	synced bool      // DEST becomes what SOURCE is, if it is a directory, too
	purged bool      // and what SOURCE does not have is deleted
	absent bool      // nothing has the name DEST
	made   *job.Made // if several sources go into one directory
	// taken maps names in DEST to the source of this command that got each.
	taken map[string]source
}

// source identifies a source: a link and the directory that it leads to may have the same path.
type source struct {
	path string
	kind vfs.Type
}

// spot is where a copy is made.
type spot struct {
	job.Place            // the directory
	name      string     // in it; "" if the copy becomes the directory
	there     *job.There // what has the name, if that was looked up
}

func spotOf(f vfs.FS, r *vfs.Resolved) spot {
	if r.Attr.Type == vfs.TypeDir {
		return spot{Place: job.Place{FS: f, Handle: r.Handle}}
	}
	return spot{job.Place{FS: f, Handle: r.Dir}, r.Name, &job.There{Handle: r.Handle, Attr: r.Attr}}
}

// destine settles where copies to dst go, or refuses. A resumed job keeps the decision of its
// first run, although the copy exists by now.
func (c *cpCmd) destine(ctx context.Context, dst *place.Place, named *namedJob) (*destination, error) {
	d := &destination{Place: dst, synced: c.becomes, purged: c.sync != nil && c.sync.Delete != nil, taken: make(map[string]source)}
	isDir, err := d.look(ctx)
	if err != nil {
		return nil, err
	}
	if d.synced {
		if !isDir && !d.absent {
			return nil, refused(fmt.Errorf("%s is not a directory, and is not replaced by one", d.Text))
		}
		return d, nil
	}
	d.inside = isDir
	if inside, known := named.remembered(); known {
		d.inside = inside
	}
	switch {
	case d.inside && !isDir:
		return nil, gone(dst.Text, named)
	case len(c.Places) > 2 && d.absent:
		return nil, refused(fmt.Errorf("%s does not exist; several SOURCEs need a directory to go to", d.Text))
	case len(c.Places) > 2 && !isDir:
		return nil, refused(fmt.Errorf("%s is not a directory; several SOURCEs need one to go to", d.Text))
	case len(c.Places) > 2:
		d.made = new(job.Made)
	}
	return d, nil
}

// refused marks err as the fault of the command line.
func refused(err error) error { return &exitError{status: exitUsage, err: err} }

// look finds what DEST names, and where that leads: a link to a directory counts as the
// directory.
func (d *destination) look(ctx context.Context) (isDir bool, err error) {
	r, err := d.Resolve(ctx, false)
	if errors.Is(err, fs.ErrNotExist) {
		d.absent = true
		dir, name, err := d.Parent(ctx)
		d.at = spot{job.Place{FS: d.FS, Handle: dir}, name, new(job.There)}
		return false, err
	}
	if err != nil {
		return false, err
	}
	d.at = spotOf(d.FS, &r)
	if r.Attr.Type != vfs.TypeSymlink {
		return r.Attr.Type == vfs.TypeDir, nil
	}
	f, to, err := d.Follow(ctx)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.broken = refused(fmt.Errorf("%s is a symbolic link that leads nowhere; nothing is copied through it", d.Text))
		return false, nil
	case errors.Is(err, syscall.ELOOP):
		d.broken = err
		return false, nil
	case err != nil:
		return false, err // it may be a directory
	}
	leads := spotOf(f, &to)
	if isDir = to.Attr.Type == vfs.TypeDir; isDir {
		d.at, d.linked = leads, true
	} else {
		d.leads = &leads
	}
	return isDir, nil
}

// itself is the spot of the copy that becomes DEST. A file is copied through a link, as by cp(1),
// and so replaces the link's target. Anything else replaces the link.
func (d *destination) itself(src *vfs.Attr) (spot, error) {
	at := d.at
	switch {
	case src.Type == vfs.TypeReg && d.leads != nil:
		at = *d.leads
	case src.Type == vfs.TypeReg:
		return at, d.broken
	case src.Type == vfs.TypeDir:
		at.there = nil // for a directory, the job asks for more
	}
	return at, nil
}

// asName handles a resumed job whose copy became DEST, while DEST leads to a directory by now. A
// copied link does so, and is made again. For a source that is a directory it finds out whether
// DEST is a link. The caller closes the place, which is nil if no look-up was needed.
func (d *destination) asName(ctx context.Context, src *vfs.Attr, o place.Options) (*place.Place, error) {
	isDir := src.Type == vfs.TypeDir
	if d.synced || d.inside || d.at.name != "" || src.Type == vfs.TypeReg || isDir && !place.IsURL(d.Text) {
		return nil, nil
	}
	o.OneFileSystem = false // DEST was opened so
	p, err := place.OpenName(ctx, d.Text, o)
	if err != nil {
		return nil, ctx.Err() // the directory above DEST may not be accessible: then DEST is taken for the directory
	}
	r, err := p.Resolve(ctx, false)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	if isDir {
		d.linked = r.Attr.Type == vfs.TypeSymlink
	} else {
		d.at = spotOf(p.FS, &r)
	}
	return p, nil
}

// isDirectory refuses sources that cannot become DEST, which is a directory by now. A file that
// cannot be copied through a link does not replace the link.
func (d *destination) isDirectory(src *place.Place, attr *vfs.Attr) error {
	kind, hint := "a special file", ""
	switch attr.Type {
	case vfs.TypeReg:
		kind = "a regular file"
	case vfs.TypeSymlink:
		kind = "a symbolic link"
		if !place.IsURL(src.Text) { // a URL with a slash would be another job
			hint = fmt.Sprintf("; %s/ is what the link leads to", src.Text)
		}
	}
	return refused(fmt.Errorf("%s is %s, and %s is a directory, or a link to one, and is not replaced%s. Nothing has been copied",
		src.Text, kind, d.Text, hint))
}

// isLink refuses to copy a directory to the target of DEST, for a job whose copy became DEST,
// which was no link to a directory then. The link may be the copy of an earlier source.
func (d *destination) isLink() error {
	hint := ""
	if !place.IsURL(d.Text) { // a URL with a slash would be another job
		hint = fmt.Sprintf(": %s/ is what it leads to", d.Text)
	}
	return refused(fmt.Errorf("%s is a link to a directory, which it was not when this job began, and is not followed%s. Nothing has been copied", d.Text, hint))
}

// gone says that the directory that a job copied into does not exist any more. The job does not
// use its parent.
func gone(dest string, named *namedJob) error {
	return &exitError{status: exitUnreachable, err: fmt.Errorf(
		"%s was a directory when this job began, and no longer is; nothing has been copied. "+
			"Bring it back and run the same command, or begin anew: mkdir the directory, and first rm -r %s", dest, quoteArg(named.Name()))}
}

// askAfter is how long the copy of a file to a server takes at least before DEST is asked for
// again in the end, since that is another connection. After a tree it always is, and on this host.
const askAfter = time.Second

// still returns an error if the name DEST leads elsewhere by now than where the copies went.
// They were made by handles, which stay with a directory that is moved. A file that was
// removed or replaced in its directory is no error: a program that waits for it may have taken it.
func (r *cpRun) still() (err error) {
	if !r.lasted {
		return nil
	}
	po, err := r.place(false)
	if err != nil {
		return err
	}
	p, err := place.Open(r.e.ctx, r.to.Text, beside(po))
	if errors.Is(err, fs.ErrNotExist) {
		return r.moved("nothing has its name now")
	}
	if err != nil {
		return fmt.Errorf("look at DEST in the end: %w", err)
	}
	defer closePlace(p, &err, &r.sum.RPCs)
	now := &destination{Place: p}
	isDir, err := now.look(r.e.ctx)
	if err != nil {
		return fmt.Errorf("look at DEST in the end: %w", err)
	}
	return r.leadsTo(now, isDir)
}

// beside has a place opened that is open already: that has the cache and the lease, and nobody needs to be told.
func beside(po place.Options) place.Options {
	po.Reading = nil
	po.Dial = append(slices.Clip(po.Dial), nfsbox.WithCacheNotes(func(string) {}))
	return po
}

// leadsTo returns an error if now, which DEST names in the end, is not where the copies went.
func (r *cpRun) leadsTo(now *destination, isDir bool) error {
	d, at := r.to, now.at
	isTree := d.inside || r.root.Type == vfs.TypeDir
	switch {
	case isTree && now.absent:
		return r.moved("nothing has its name now")
	case isTree && !isDir, !isTree && isDir && !now.linked:
		return r.moved("its name is that of something else now")
	case isTree:
	case now.linked || d.leads == nil && now.leads != nil:
		return nil // a link was copied, or has replaced the file in its directory
	case d.leads != nil && now.leads != nil:
		at = *now.leads
	}
	is, err := at.FS.GetAttr(r.e.ctx, at.Handle, vfs.MaskV3)
	if err != nil {
		return fmt.Errorf("look at DEST in the end: %w", err)
	}
	was := r.root
	if d.inside || !isTree {
		was, err = r.at.FS.GetAttr(r.e.ctx, r.at.Handle, vfs.MaskV3)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, vfs.ErrStale):
		return r.moved("the directory that was there is gone")
	case err != nil:
		return fmt.Errorf("look at DEST in the end: %w", err)
	case !job.SameObject(&was, &is) && isTree:
		return r.moved("another directory has its name now")
	case !job.SameObject(&was, &is):
		return r.moved("another directory has the name of the one that it was copied to")
	}
	return nil
}

// moved says that DEST is not where the copies are.
func (r *cpRun) moved(now string) error {
	return &exitError{status: exitIncomplete, err: fmt.Errorf("%s: %w: %s. What was copied is where it is now, if anywhere", r.to.Text, job.ErrMoved, now)}
}

// receive returns the directory that a source is copied into, and its name there. If the name is
// empty, the source's contents go into the directory. skip says that the command has named the
// same source before.
func (d *destination) receive(src *place.Place, attr *vfs.Attr) (at spot, skip bool, err error) {
	isDir := attr.Type == vfs.TypeDir
	if !d.inside {
		if d.absent && !isDir && place.MeansDir(d.Text) {
			return at, false, refused(fmt.Errorf("%s does not exist, and a %v cannot become a directory", d.Text, attr.Type))
		}
		if d.at.name == "" && !isDir {
			return at, false, d.isDirectory(src, attr)
		}
		if d.linked && isDir && !d.synced {
			return at, false, d.isLink()
		}
		if at, err = d.itself(attr); err == nil {
			err = d.refuseItself(src, isDir, d.Text)
		}
		return at, false, err
	}
	name, this := ownName(src), source{jobPlace(src.Text), attr.Type}
	at = spot{Place: d.at.Place, name: name}
	was, taken := d.taken[name]
	_, contents := d.taken[""]
	switch {
	case taken && was == this:
		return at, true, nil
	case taken:
		return at, false, refused(fmt.Errorf("%s: will not overwrite what %s has just become in %s", src.Text, was.path, d.Text))
	case contents || name == "" && len(d.taken) > 0:
		return at, false, refused(fmt.Errorf("%s: the contents of a directory may have the names of other SOURCEs; copy them by a command of their own", src.Text))
	}
	d.taken[name] = this
	return at, false, d.refuseItself(src, isDir, strings.TrimSuffix(d.Text, "/")+"/"+name)
}

// refuseItself compares two paths of this host: it refuses to copy a directory to a path within
// it, and anything else onto itself. Over the network, package job checks that.
func (d *destination) refuseItself(src *place.Place, isDir bool, to string) error {
	if !src.IsLocal() || !d.IsLocal() {
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
		return refuseSameFile(src.Text, to, from)
	}
	inside, err := liesIn(to, from)
	if inside {
		err = refused(fmt.Errorf("copy %s to %s: %w", src.Text, to, job.ErrIntoItself))
	}
	if inside || err != nil || !d.purged || d.absent {
		return err
	}
	if from, err = os.Stat(d.Text); err != nil {
		return place.Reached(err)
	}
	if inside, err = liesIn(src.Text, from); inside {
		err = refused(fmt.Errorf("%s lies in %s, and --delete would delete it there", src.Text, d.Text))
	}
	return err
}

// liesIn reports whether a path leads into a directory, or to a name in it.
func liesIn(path string, dir os.FileInfo) (bool, error) {
	// Symbolic links on the way may lead elsewhere.
	at, err := filepath.Abs(path)
	if err == nil {
		at, err = filepath.EvalSymlinks(filepath.Dir(at))
	}
	if err != nil {
		return false, place.Reached(err)
	}
	for last := ""; at != last; last, at = at, filepath.Dir(at) {
		if there, err := os.Stat(at); err == nil && os.SameFile(dir, there) {
			return true, nil
		}
	}
	return false, nil
}

// refuseSameFile refuses to copy an object that is no directory onto itself, a link to its
// target, and a file to a link that leads to it.
func refuseSameFile(source, to string, from os.FileInfo) error {
	there, err := os.Lstat(to)
	if err == nil && there.Mode()&fs.ModeSymlink != 0 && from.Mode()&fs.ModeSymlink == 0 {
		there, err = os.Stat(to)
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
		return refused(fmt.Errorf("copy %s to %s: %w", source, to, job.ErrIntoItself))
	}
	return nil
}

// notADirectory refuses a SOURCE of sync.
func notADirectory(source string, t vfs.Type) error {
	hint := fmt.Sprintf("nfsbox cp copies a %v", t)
	if t == vfs.TypeSymlink {
		hint = source + "/ is what it leads to"
	}
	return refused(fmt.Errorf("%s is a %v, and no directory: %s", source, t, hint))
}

// ownName is the name of src's copy in a directory: "" if its contents go into the directory,
// like those of a server's root.
func ownName(src *place.Place) string {
	if place.NamesContents(src.Text) {
		return ""
	}
	return src.Base()
}
