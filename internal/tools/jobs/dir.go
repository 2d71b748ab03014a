package jobs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/nfsbox/nfsbox/internal/tools/job"
)

// Dir is the directory of a job, whose record this run has locked.
type Dir struct {
	*os.Root
	Record *os.File // locked

	// Job is what job.json says; the files of earlier programs may not say all: what is not known
	// is empty.
	Job Job
}

// Open opens the directory of the job of this name, or makes it, locks its record, and reads what the job is.
// It waits up to two seconds for another run: the error then Is job.ErrRecord. It Is ErrForeign as that of Find.
func (s Store) Open(ctx context.Context, name string) (*Dir, error) {
	all, err := s.records(namedDir, true)
	if err != nil {
		return nil, err
	}
	defer func() { _ = all.Close() }() // nothing was written
	for range maxTaken {
		d, err := open(ctx, all, name)
		if !errors.Is(err, errEnded) {
			return d, err
		}
	}
	return nil, fmt.Errorf("%w: it is forgotten again and again", job.ErrRecord)
}

// maxTaken is how often a record is opened again because it was forgotten before it was locked.
const maxTaken = 8

func open(ctx context.Context, all *os.Root, name string) (d *Dir, err error) {
	if err := all.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	root, err := all.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if err := Private(root); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	d = &Dir{Root: root}
	if d.Record, err = job.LockRecord(ctx, root); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	if err := d.there(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if err := d.load(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	Withdraw(root)
	return d, nil
}

// there returns errEnded if the record was forgotten before it was locked.
func (d *Dir) there() error {
	mine, err := d.Record.Stat()
	if err != nil {
		return err
	}
	now, err := d.Root.Lstat(job.RecordFile)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(mine, now) {
		return errEnded
	}
	return err
}

// Close gives the job up.
func (d *Dir) Close() error { return errors.Join(d.Record.Close(), d.Root.Close()) }

func (d *Dir) load() error {
	err := d.Load()
	if errors.Is(err, fs.ErrNotExist) {
		return d.loadOld()
	}
	return err
}

// Load reads d.Job from job.json; if there is none, the error Is fs.ErrNotExist.
func (d *Dir) Load() error {
	b, err := Read(d.Root, fileName)
	if err == nil {
		d.Job, err = decode(b)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(d.Name(), fileName), err)
	}
	return nil
}

// Save replaces job.json by d.Job, and makes it stable.
func (d *Dir) Save() error { return d.save(true) }

// Note replaces job.json by d.Job. After a loss of power it may be empty.
func (d *Dir) Note() error { return d.save(false) }

func (d *Dir) save(stable bool) error {
	b, err := d.Job.encode()
	if err != nil {
		return fmt.Errorf("%s: %w", fileName, err)
	}
	return write(d.Root, fileName, string(b), stable)
}

// WriteSynced writes a file, whole or not at all, and makes it stable.
func WriteSynced(dir *os.Root, name, text string) error { return write(dir, name, text, true) }

// write writes a file, whole or not at all.
func write(dir *os.Root, name, text string, stable bool) error {
	if err := dir.Remove(name + ".tmp"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // to open what may be there, such as a pipe, could wait
	}
	f, err := dir.OpenFile(name+".tmp", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if stable {
		err = errors.Join(err, f.Sync())
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := dir.Rename(name+".tmp", name); err != nil || !stable {
		return err
	}
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
