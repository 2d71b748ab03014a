package mounter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"time"

	"github.com/nfsbox/nfsbox"
	"github.com/nfsbox/nfsbox/internal/server/bucket"
	"github.com/nfsbox/nfsbox/internal/tools/fusefs"
	"github.com/nfsbox/nfsbox/internal/tools/mountopt"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/vfs"
)

// The bounds of a mount's process.
const (
	// firstPause and maxPause are how long is waited until a server is tried again: each time twice as long.
	firstPause = time.Second
	maxPause   = 30 * time.Second
	// stuck is how long an unmounted file system may wait for its server without a byte becoming stable. Then what is
	// not stable is given up, and reported.
	stuck = 10 * time.Second
	// busyPatience is how long a process that a signal ends waits for those who still use its mount, which has
	// disappeared already. Then they get ENOTCONN. It is also how long an umount waits for a mount to end that may be
	// mounted in another namespace too.
	busyPatience = 5 * time.Second
)

// Options say what to mount where.
type Options struct {
	Mount *mountopt.Mount
	Dir   string
	Dial  []nfsbox.Option
	// Silent is told of the store of a snapshot in a bucket, as Dial has servers told of.
	Silent func(bucket.Silence)
	Rand   func(p []byte)
	Note   func(text string)      // of what goes on; before Ready to the user, later to a log
	Ready  func(m *Mounted) error // the mount answers; nil with bg: the server does not, and is tried again
}

// Mounted is a mount that answers.
type Mounted struct {
	Source string
	Dir    string // absolute
	// Snapshot is NAME@ID of what is mounted; "" if it is no snapshot.
	Snapshot string

	Posix bool // locks by fcntl(2) are the server's; else they hold on this host alone
	Flock bool // and those by flock(2)
}

// Report is what a mount could not make stable.
type Report struct {
	Bytes    uint64   `json:"bytes"`    // that programs have written, and the server has not confirmed
	Files    int      `json:"files"`    // that were being closed
	Problems []string `json:"problems"` // in words; none: all is well
	// Elsewhere says that another mount namespace has the mount as well, so that it goes on there.
	Elsewhere bool `json:"elsewhere"`
}

// Lost reports whether there is anything in it.
func (r *Report) Lost() bool { return r.Bytes > 0 || r.Files > 0 || len(r.Problems) > 0 }

// SystemError is an error of this host: it cannot mount.
type SystemError struct{ Err error }

// Error implements error.
func (e *SystemError) Error() string { return e.Err.Error() }

// Unwrap returns what this host said.
func (e *SystemError) Unwrap() error { return e.Err }

// Run mounts, and answers until the directory is unmounted, or ctx ends: then it unmounts it. Nothing is left mounted if
// it fails.
func Run(ctx context.Context, o Options) (*Report, error) {
	dir, err := CheckDir(o.Dir, false, o.Note)
	if err != nil {
		return nil, err
	}
	p, err := o.open(ctx)
	if err != nil {
		return nil, err
	}
	r, err := o.serve(ctx, p, dir)
	return r, errors.Join(err, closed(p, r))
}

// closed closes the client. What that says of lost bytes is in the report already, as far as one is made.
func closed(p *place.Place, r *Report) error {
	err := p.Close()
	if err != nil && r != nil {
		if len(r.Problems) < maxProblems {
			r.Problems = append(r.Problems, err.Error())
		}
		return nil
	}
	return err
}

// maxProblems bounds what a report says; fusefs has a bound of its own below it.
const maxProblems = 100

// open finds the server, and what it exports.
func (o *Options) open(ctx context.Context) (*place.Place, error) {
	try, cancel := context.WithTimeout(ctx, max(o.Mount.Retry, time.Minute))
	defer cancel()
	told := false
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		p, err := o.try(try)
		if err == nil {
			return p, nil
		}
		if o.Mount.Retry == 0 || !passing(err) || try.Err() != nil {
			return nil, err
		}
		if !told {
			o.Note(fmt.Sprintf("%v; it is tried again for %v (retry)", err, o.Mount.Retry))
			if o.Mount.Background {
				if err := o.Ready(nil); err != nil {
					return nil, err
				}
			}
			told = true
		}
		select {
		case <-try.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

// try opens what is to be mounted. From then on o.Mount is that which was found.
func (o *Options) try(ctx context.Context) (*place.Place, error) {
	p, err := o.tryOne(ctx)
	if err == nil || o.Mount.Else == nil || passing(err) || ctx.Err() != nil {
		return p, err
	}
	o.Mount = o.Mount.Else
	return o.tryOne(ctx)
}

func (o *Options) tryOne(ctx context.Context) (*place.Place, error) {
	if o.Mount.Snapshot {
		return o.trySnapshot(ctx)
	}
	p, err := place.Open(ctx, o.Mount.URL, place.Options{Dial: o.Dial})
	if err != nil && o.Mount.FSC && !passing(err) {
		if again, err2 := place.Open(ctx, o.Mount.Uncached(), place.Options{Dial: o.Dial}); err2 == nil {
			o.Note(fmt.Sprintf("%v; it is mounted without a disk cache", err))
			p, err = again, nil
		}
	}
	if err != nil || p.Path == "" {
		return p, err
	}
	_, err = p.Resolve(ctx, true)
	if err == nil {
		err = &os.PathError{Op: "mount", Path: p.Text, Err: vfs.ErrNotDir}
	}
	return nil, errors.Join(err, p.Close())
}

// passing reports whether an error may pass: the server has said nothing, or a prune has the store for itself. That there is no store is
// an answer, and so is one that may not be read.
func passing(err error) bool {
	if place.InUse(err) {
		return true
	}
	if _, none := errors.AsType[*place.NoExport](err); none || !errors.Is(err, place.ErrUnreachable) || errors.Is(err, place.ErrNoStore) {
		return false
	}
	_, answered := vfs.StatusOf(err)
	answered = answered || errors.Is(err, fs.ErrPermission) // of a bucket
	return !answered || errors.Is(err, vfs.ErrNoAnswer)
}

// serve mounts, and answers until the end.
func (o *Options) serve(ctx context.Context, p *place.Place, dir string) (*Report, error) {
	opt := o.Mount.FS
	opt.Log, opt.Rand = o.Note, o.Rand
	opt.AllowOther = opt.AllowOther || os.Geteuid() == 0
	opt.Fixed = o.Mount.HasUser()
	top, err := o.top(ctx, p, &opt)
	if err != nil {
		return nil, err
	}
	m, err := fusefs.New(top, dir, opt)
	if refused, is := errors.AsType[*fusefs.RefusedError](err); is {
		return nil, usage{refused, refused.Advice}
	}
	if err != nil {
		return nil, &SystemError{err}
	}
	defer spareProcessors()()
	served := make(chan struct{})
	go func() {
		defer close(served)
		m.Serve()
	}()
	told := listen(socketPath(dir))
	defer told.close()
	if err = m.Wait(); err == nil {
		at := &Mounted{Source: opt.Source, Dir: dir}
		if s, ok := p.Snapshot(); ok {
			ref := s.Ref()
			at.Snapshot = ref.Text()
		}
		at.Posix, at.Flock = m.Locks()
		err = o.Ready(at)
	}
	if err != nil {
		err = errors.Join(err, m.Unmount(true))
		<-served
		m.Drain(ctx)
		return nil, err
	}
	select {
	case <-served:
	case <-ctx.Done():
		o.leave(m, served)
	}
	told.end()
	r := o.drain(p, m, told)
	told.report(r)
	return r, nil
}

// leave unmounts because a signal says so.
func (o *Options) leave(m *fusefs.Mount, served <-chan struct{}) {
	if err := m.Unmount(false); err != nil {
		o.Note(fmt.Sprintf("%v; it disappears, and those who use it get errors in %v", err, busyPatience))
		if err := m.Unmount(true); err != nil {
			o.Note(err.Error())
		}
	}
	select {
	case <-served:
	case <-time.After(busyPatience):
	}
}

// drain waits for what is not stable, as long as it becomes less, or until somebody who unmounts does not want to wait.
func (o *Options) drain(p *place.Place, m *fusefs.Mount, told *socket) *Report {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		defer cancel()
		for before := int64(math.MaxInt64); ; {
			s, _ := p.Stats()
			if s.Dirty >= before {
				return
			}
			before = s.Dirty
			select {
			case <-ctx.Done():
				return
			case <-told.hurry:
				return
			case <-time.After(stuck):
			}
		}
	}()
	before, _ := p.Stats()
	u := m.Drain(ctx)
	after, _ := p.Stats()
	r := &Report{Bytes: after.Buffers.BytesLost - before.Buffers.BytesLost, Files: u.Open}
	for _, err := range u.Errors {
		r.Problems = append(r.Problems, err.Error())
	}
	if r.Files > 0 && len(u.Errors) == 0 {
		r.Problems = append(r.Problems, fmt.Sprintf("files of which the server has not confirmed what was written: %d", r.Files))
	}
	if r.Bytes > 0 {
		r.Problems = append(r.Problems, fmt.Sprintf("%d bytes were not made stable, and are lost", r.Bytes))
	}
	return r
}
