package jobs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/job"
)

const (
	namedDir   = "jobs"
	unnamedDir = "unfinished"
	begunFile  = "begun" // of a copy without a name: what it copies
	fileSuffix = "-file" // of the record of a copy that is no directory's

	// maxRecords bounds how many records of each kind are listed. Further ones are counted.
	maxRecords = 10_000
	// shownID is how many digits of the name of a copy without a name are shown. Fewer name it, too,
	// if no other record begins so; minID at least.
	shownID = 12
	minID   = 4
	// maxGone bounds how many names of files that are not a record's an error lists.
	maxGone = 5
)

// Errors of a Store.
var (
	// ErrNone says that there is no such record.
	ErrNone = errors.New("there is no such job")
	// ErrRuns says that a run has the record.
	ErrRuns = errors.New("it runs")
)

var (
	names   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	unnamed = regexp.MustCompile(`^[0-9a-f]{32}(` + fileSuffix + `)?$`)
	begun   = regexp.MustCompile(`^[0-9a-f]+(` + fileSuffix + `)?$`)
)

// CheckName returns an error unless a job may have this name. It becomes that of a directory.
func CheckName(name string) error {
	if !names.MatchString(name) {
		return fmt.Errorf("%q: a name has 1 to 64 letters, digits, dots, dashes and underscores, and begins with a letter or digit", name)
	}
	return nil
}

// Store is the directory with all records of a user. Those of jobs have names. Those of copies without
// are there while there is something to go on from. It is taken for hostile.
type Store string

// Path is the directory of the job of this name.
func (s Store) Path(name string) string { return filepath.Join(string(s), namedDir, name) }

// Record is what is known of a job.
type Record struct {
	Name  string // by which Find finds it
	Named bool   // the user has given it the name
	Dir   string // its directory

	// State is how it stands: "" if it has not begun. A run that was killed is Interrupted, whatever
	// job.json says. Where there are no locks it is what that says.
	State  State
	Killed bool       // it has not said how it ended
	By     string     // the process that has it, if it is Running, as far as that is known
	At     time.Time  // when it was last known to be at work
	Job    Job        // what is not known is zero
	Files  uint64     // that are recorded as copied
	Parts  []job.Part // files that are copied in part

	id string // the name of its directory
}

// List calls each with every record, in no order. For one that cannot be read it gets an error, and a Record with the
// name alone, which may hold any bytes. The error that List returns is of the whole.
func (s Store) List(each func(Record, error)) (whole error) {
	for _, kind := range [...]string{namedDir, unnamedDir} {
		all, list, err := s.all(kind)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			whole = errors.Join(whole, err)
			continue
		}
		for _, id := range list[:min(len(list), maxRecords)] {
			r, err := s.read(all, kind, id)
			if !errors.Is(err, errEnded) {
				each(r, err)
			}
		}
		if len(list) > maxRecords {
			whole = errors.Join(whole, fmt.Errorf("%s has more than %d records, and the others are not listed", all.Name(), maxRecords))
		}
		whole = errors.Join(whole, all.Close())
	}
	return whole
}

// all opens the directory of records of a kind, and lists them; one more than maxRecords at most.
func (s Store) all(kind string) (*os.Root, []string, error) {
	all, err := s.records(kind, false)
	if err != nil {
		return nil, nil, err
	}
	dir, err := all.Open(".")
	if err != nil {
		return nil, nil, errors.Join(err, all.Close())
	}
	list, err := dir.Readdirnames(maxRecords + 1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err = errors.Join(err, dir.Close()); err != nil {
		return nil, nil, errors.Join(err, all.Close())
	}
	slices.Sort(list)
	return all, list, nil
}

// errEnded says that a record has gone while it was looked at.
var errEnded = errors.New("its run has ended")

// read reads a record.
func (s Store) read(all *os.Root, kind, id string) (r Record, err error) {
	r = Record{Name: id, Named: kind == namedDir, Dir: filepath.Join(string(s), kind, id), id: id}
	if good := names; !good.MatchString(id) || !r.Named && !unnamed.MatchString(id) {
		return r, errors.New("no record has such a name")
	}
	info, err := all.Lstat(id)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return r, errEnded
	case err != nil:
		return r, err
	case !info.IsDir():
		return r, errors.New("it is no directory")
	}
	if err := owned(info, r.Dir, false); err != nil { // it may not be opened, which would say less
		return r, err
	}
	dir, err := all.OpenRoot(id)
	if err != nil {
		return r, err
	}
	defer func() { _ = dir.Close() }() // nothing was written
	if err := Private(dir); err != nil {
		return r, err
	}
	if !r.Named {
		r.Name = shown(id)
	}
	return r, r.load(dir)
}

// shown is the name of a record of a copy without a name.
func shown(id string) string {
	if digits, of := strings.CutSuffix(id, fileSuffix); of {
		return digits[:shownID] + fileSuffix
	}
	return id[:shownID]
}

// load reads what is in the record's directory.
func (r *Record) load(dir *os.Root) error {
	var held bool
	var err error
	if r.By, held, err = r.held(dir); err != nil {
		return err
	}
	r.Files = job.Entries(dir)
	r.Parts, _ = job.Parts(dir) // of a damaged file nothing is known, and the next run says so
	d := Dir{Root: dir}
	switch err = d.Load(); {
	case errors.Is(err, fs.ErrNotExist) && r.Named:
		err = d.loadOld()
	case errors.Is(err, fs.ErrNotExist) || err != nil && !r.Named: // of which it is a help, and no more
		d.Job, err = loadBegun(dir)
	}
	if err != nil {
		return err
	}
	r.Job, r.State = d.Job, d.Job.State
	for _, name := range [...]string{job.RecordFile, job.PartsFile, begunFile, FileName} {
		if info, err := dir.Lstat(name); err == nil && info.ModTime().After(r.At) {
			r.At = info.ModTime()
		}
	}
	switch {
	case held:
		r.State = Running
	case r.State == Running && job.Locks, r.State == "" && (!r.Named || r.Files > 0):
		r.State, r.Killed = Interrupted, true
	}
	return nil
}

// held asks the lock of the record.
func (r *Record) held(dir *os.Root) (by string, held bool, err error) {
	if r.Named {
		return job.RecordHeld(dir)
	}
	f, err := dir.Open(".")
	if err != nil {
		return "", false, err
	}
	defer func() { _ = f.Close() }() // nothing was written
	return job.Held(f)
}

// loadBegun reads what a copy without a name says of itself, if it has no job.json.
func loadBegun(dir *os.Root) (j Job, err error) {
	b, err := Read(dir, begunFile)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return j, err
	}
	var was struct{ Source, Dest string }
	if err := json.Unmarshal(b, &was); err != nil {
		return j, fmt.Errorf("%s: it is damaged: %w", filepath.Join(dir.Name(), begunFile), err)
	}
	return Job{Command: "cp", Source: Text(was.Source), Dest: Text(was.Dest)}, nil
}

// Find finds the record that name names: a job, or a copy without a name, of whose name the beginning is
// enough. The error Is ErrNone if there is none, and ErrForeign if it may be another user's. Of one that cannot be read the Record has Name, Named
// and Dir.
func (s Store) Find(name string) (Record, error) {
	if err := CheckName(name); err != nil {
		return Record{}, fmt.Errorf("%w: %w", ErrNone, err)
	}
	all, err := s.records(namedDir, false)
	if err == nil {
		_, err = all.Lstat(name)
		if err == nil {
			r, err := s.read(all, namedDir, name)
			return r, errors.Join(err, all.Close())
		}
		err = errors.Join(all.Close(), err)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return Record{}, err
	}
	return s.findUnnamed(name)
}

func (s Store) findUnnamed(name string) (r Record, err error) {
	none := fmt.Errorf("%w: %s", ErrNone, name)
	digits, ofFile := strings.CutSuffix(name, fileSuffix)
	if !begun.MatchString(name) || len(digits) < minID {
		return r, none
	}
	all, list, err := s.all(unnamedDir)
	if errors.Is(err, fs.ErrNotExist) {
		return r, none
	}
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, all.Close()) }()
	var found []string
	for _, id := range list {
		whole, isFile := strings.CutSuffix(id, fileSuffix)
		if strings.HasPrefix(whole, digits) && (isFile == ofFile || !ofFile && len(digits) < shownID) && unnamed.MatchString(id) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return r, none
	case 1:
		r, err = s.read(all, unnamedDir, found[0])
		if errors.Is(err, errEnded) {
			err = none
		}
		return r, err
	}
	return r, fmt.Errorf("%w: %d copies begin with %s, %s and %s among them", ErrNone, len(found), name, shown(found[0]), shown(found[1]))
}

// Forget removes a record. The error Is ErrRuns if a run has it. What is in its directory and not a
// record's stays, and is an error. Of what was copied nothing is touched.
func (s Store) Forget(r *Record) error {
	kind := unnamedDir
	if r.Named {
		kind = namedDir
	}
	all, err := s.records(kind, false)
	if err != nil {
		return err
	}
	defer func() { _ = all.Close() }() // what was removed is
	info, err := all.Lstat(r.id)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is no directory", r.Dir)
	}
	if err := owned(info, r.Dir, false); err != nil {
		return err
	}
	dir, err := all.OpenRoot(r.id)
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // nothing was written
	lock, err := r.lock(dir)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }() // nothing was written
	if err := empty(dir); err != nil {
		return err
	}
	return all.Remove(r.id)
}

// lock has the record for itself, and does not wait for it.
func (r *Record) lock(dir *os.Root) (*os.File, error) {
	what := "."
	if info, err := dir.Lstat(job.RecordFile); r.Named && err == nil && info.Mode().IsRegular() {
		what = job.RecordFile
	}
	f, err := dir.Open(what)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // it is not waited for
	if err := job.Lock(ctx, f); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrRuns, err), f.Close())
	}
	return f, nil
}

// ofRecord matches the names of files that records have.
var ofRecord = regexp.MustCompile(`^(copied|parts|index\.[A-Za-z0-9.]+|job\.json|control\.json|begun|target|places|source)$|^[a-z]+(\.json)?(\.[A-Z0-9]+)?\.tmp$`)

// empty removes what a record has in dir, the record itself at the end: until then it is locked
// for other processes.
func empty(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	list, err := f.Readdirnames(-1)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	foreign := slices.DeleteFunc(slices.Clone(list), ofRecord.MatchString)
	if len(foreign) > 0 {
		return fmt.Errorf("%s has what is not a record's, and is left: %q", dir.Name(), foreign[:min(len(foreign), maxGone)])
	}
	slices.SortFunc(list, func(a, b string) int { return cmp.Compare(last(a), last(b)) })
	for _, name := range list {
		if err := dir.Remove(name); err != nil {
			return err
		}
	}
	return nil
}

func last(name string) int {
	if name == job.RecordFile {
		return 1
	}
	return 0
}
