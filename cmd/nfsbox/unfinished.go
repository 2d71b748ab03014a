package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/job"
	"github.com/nfsbox/nfsbox/internal/tools/jobs"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
	"github.com/nfsbox/nfsbox/vfs"
)

// The copy of a directory keeps a record while it runs, also without --job. The record is named
// by the command's places and options, and removed when the copy has ended well. If it has not,
// the same command finds the record, and goes on. The directory of a record has the job's own
// file, and "begun".
const (
	begunFile    = "begun"
	begunVersion = 1

	// maxUnfinished is how long after its last entry a record is gone on with. An older one is
	// removed, and the copy begins anew.
	maxUnfinished = 7 * 24 * time.Hour
	// maxPruned is how many records a run looks at, to remove those that are too old.
	maxPruned = 256
	// maxKept is how many sources of one command have records, each of which takes a descriptor.
	// Further ones have none, and are copied anew by the same command.
	maxKept = 64
	// maxTaken is how often a record is opened again because its run has just removed it.
	maxTaken = 8
)

// begun says what a run has begun to copy, and to where.
type begun struct {
	Version int    `json:"version"`
	Nonce   string `json:"nonce"` // is part of the job's ID
	Source  string `json:"source"`
	Dest    string `json:"dest"`
	Inside  bool   `json:"inside"` // DEST was a directory, and the copy is in it
	// Dir is DEST if Inside, else the directory that the copy became; empty: it was not made.
	Dir []uint64 `json:"dir,omitempty"`
	// From is SOURCE. A record of an earlier version does not say.
	From jobs.Origin `json:"from,omitzero"`
}

// unfinished is the record of one source, open and locked.
type unfinished struct {
	all  *os.Root // of all records
	name string
	dir  *os.Root
	lock *os.File // the directory
	was  *begun   // of the run that was interrupted; nil: there was none
	at   time.Time
	now  begun

	resumed bool // this run goes on

	told *jobs.Dir // its job.json; nil: it has none
	rest func()    // ends the keeping of that
}

// recordName names the record of the copy of source to dest. Two commands share a name only if
// they mean the same: on this host, the same places in the same form, and options that matter.
func (c *cpCmd) recordName(source, dest string) (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", err
	}
	form := func(p string) string {
		return fmt.Sprintf("%q %v %v", jobPlace(p), place.NamesContents(p), place.MeansDir(p))
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %q %s %s %v %v %v", c.verb(), host, form(source), form(dest), len(c.Places) > 2, c.NoOwner, c.OneFileSystem))
	return hex.EncodeToString(sum[:16]), nil
}

// unfinishedRoot opens the directory of all records, and makes it if make is set.
func unfinishedRoot(make bool) (*os.Root, error) {
	all, err := jobStore()
	if err != nil {
		return nil, err
	}
	return all.Unfinished(make)
}

// openUnfinished opens and locks the record of source and dest, and makes one if make is set. It
// returns nil if there is none. An error that Is job.ErrRecord says that another run has it.
func (c *cpCmd) openUnfinished(ctx context.Context, source, dest string, make bool) (u *unfinished, err error) {
	name, err := c.recordName(source, dest)
	if err != nil {
		return nil, err
	}
	return openNamed(ctx, name, make)
}

// errEnded says that another run with the same record has ended well meanwhile.
var errEnded = errors.New("it was under way when this command began, and has ended well")

// openNamed is openUnfinished for a record of this name. If there was one, and is none any more, and make is not set, that is errEnded.
func openNamed(ctx context.Context, name string, make bool) (u *unfinished, err error) {
	all, err := unfinishedRoot(make)
	if errors.Is(err, fs.ErrNotExist) && !make {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	u = &unfinished{all: all, name: name}
	ended := false // another run had the record, and has removed it
	for range maxTaken {
		taken := false
		if taken, err = u.take(ctx, make); taken {
			u.load()
			return u, nil
		}
		if err != nil {
			break
		}
		ended = true
	}
	if errors.Is(err, fs.ErrNotExist) && !make {
		if err = nil; ended {
			err = errEnded
		}
	}
	return nil, errors.Join(err, all.Close())
}

// take opens the record's directory and locks it. It is false if the directory was removed
// meanwhile, by a run that has ended well.
func (u *unfinished) take(ctx context.Context, make bool) (taken bool, err error) {
	if make {
		if err := u.all.Mkdir(u.name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return false, err
		}
	}
	if u.dir, err = u.all.OpenRoot(u.name); err != nil {
		return false, err
	}
	if err := jobs.Private(u.dir); err != nil {
		return false, errors.Join(err, u.dir.Close())
	}
	if u.lock, err = u.dir.Open("."); err != nil {
		return false, errors.Join(err, u.dir.Close())
	}
	err = job.Lock(ctx, u.lock)
	var mine, there os.FileInfo
	if err == nil {
		mine, err = u.lock.Stat()
	}
	if err == nil {
		if there, err = u.all.Lstat(u.name); errors.Is(err, fs.ErrNotExist) {
			there, err = nil, nil
		}
	}
	if err == nil && there != nil && os.SameFile(mine, there) {
		jobs.Withdraw(u.dir)
		return true, nil
	}
	return false, errors.Join(err, u.lock.Close(), u.dir.Close())
}

// load reads what an interrupted run has begun. What cannot be read, or is too old, counts as
// nothing.
func (u *unfinished) load() {
	b, err := jobs.Read(u.dir, begunFile)
	if err != nil {
		return
	}
	var was begun
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if d.Decode(&was) != nil || was.Version != begunVersion || len(was.Nonce) != 32 || len(was.Dir) != 0 && len(was.Dir) != 3 {
		return
	}
	if u.at = lastEntry(u.dir); time.Since(u.at) < maxUnfinished {
		u.was = &was
	}
}

// ended is how the run before has ended, as far as it has said so.
func (u *unfinished) ended() string {
	was := jobs.Dir{Root: u.dir}
	if was.Load() == nil && was.Job.State == jobs.Failed && was.Job.Error == "" {
		return " of which items failed on "
	}
	return " that was broken off on "
}

// lastEntry is when the run was last known to be at work.
func lastEntry(dir *os.Root) (at time.Time) {
	for _, name := range [...]string{job.RecordFile, job.PartsFile, begunFile} {
		if info, err := dir.Lstat(name); err == nil && info.ModTime().After(at) {
			at = info.ModTime()
		}
	}
	return at
}

// begin makes the record that of a new run. Nothing of an earlier one is used. Its parts of large files stay
// known: the run removes them in the end.
func (u *unfinished) begin(now begun, random func([]byte)) error {
	var nonce [16]byte
	random(nonce[:])
	now.Version, now.Nonce = begunVersion, hex.EncodeToString(nonce[:])
	u.was, u.now = nil, now
	for _, name := range [...]string{jobs.FileName, begunFile, job.RecordFile} {
		if err := u.dir.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return u.write()
}

func (u *unfinished) write() error {
	text, err := json.Marshal(&u.now)
	if err != nil {
		return err
	}
	return jobs.WriteSynced(u.dir, begunFile, string(text)+"\n")
}

// rooted notes the directory that the copy became.
func (u *unfinished) rooted(a *vfs.Attr) error {
	id := idOf(a)
	if u.now.Inside || id == nil || len(u.now.Dir) > 0 {
		return nil
	}
	u.now.Dir = id
	return u.write()
}

// id is the job's ID, which no other run has.
func (u *unfinished) id() string { return strings.Join([]string{"cp", u.now.Nonce}, "\x00") }

// idle reports whether nothing was copied that the record knows of.
func (u *unfinished) idle() bool {
	parts, err := job.Parts(u.dir)
	return (u.now.Inside || len(u.now.Dir) == 0) && !job.Recorded(u.dir) && len(parts) == 0 && err == nil
}

// close gives the record up, and removes it if the copy has ended well.
func (u *unfinished) close(well bool) error {
	err := u.dir.Close()
	if well {
		err = errors.Join(err, u.all.RemoveAll(u.name))
	}
	return errors.Join(err, u.lock.Close(), u.all.Close())
}

// idOf is the identity of an object; nil if it has none.
func idOf(a *vfs.Attr) []uint64 {
	if !a.Has(vfs.MaskFSID | vfs.MaskFileID) {
		return nil
	}
	return []uint64{a.FSID[0], a.FSID[1], a.FileID}
}

// prune removes records that are too old to be gone on with, and that no run has. It tells t what they have
// left.
func prune(t *progress.Tracker) {
	all, err := unfinishedRoot(false)
	if err != nil {
		return // there are none
	}
	defer func() { _ = all.Close() }() // nothing was written
	list, err := all.Open(".")
	if err != nil {
		return
	}
	defer func() { _ = list.Close() }() // nothing was written
	names, _ := list.Readdirnames(maxPruned)
	for _, name := range names {
		dir, err := all.OpenRoot(name)
		if err != nil {
			continue
		}
		if at := lastEntry(dir); !at.IsZero() && time.Since(at) > maxUnfinished {
			pruneOne(t, all, dir, name)
		}
		_ = dir.Close() // nothing was written
	}
}

// pruneOne removes a record, unless a run has it. A record that stays is met again.
func pruneOne(t *progress.Tracker, all, dir *os.Root, name string) {
	lock, err := dir.Open(".")
	if err != nil {
		return
	}
	defer func() { _ = lock.Close() }() // nothing was written
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // it is not waited for
	if job.Lock(ctx, lock) == nil && time.Since(lastEntry(dir)) > maxUnfinished {
		var was begun
		if b, err := jobs.Read(dir, begunFile); err == nil {
			_ = json.Unmarshal(b, &was) // it is only told
		}
		parts, _ := job.Parts(dir) // those of a damaged file are not known
		for _, text := range orphans(was.Dest, parts) {
			t.Report(progress.Event{Type: "note", Kind: job.KindTemporary, Message: "a copy was not gone on with for a week, and is forgotten; it has left " + text})
		}
		_ = all.RemoveAll(name)
	}
}

// maxOrphans is how many temporaries are named that nothing goes on from any more.
const maxOrphans = 5

// orphans name the temporaries of a copy to dest that is forgotten.
func orphans(dest string, parts []job.Part) (texts []string) {
	for i, p := range parts {
		if i == maxOrphans {
			return append(texts, text(counted{uint64(len(parts) - i), "more|more"}))
		}
		texts = append(texts, fmt.Sprintf("%s, with %s of %s, of the copy to %s; remove it by hand", quoteArg(p.Temp), progress.Size(p.Bytes), quoteArg(p.Path), quoteArg(dest)))
	}
	return texts
}
