package nfsclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// stepTime bounds each step of a diagnosis. One that takes longer has failed.
	stepTime = 15 * time.Second

	// tryTime is how long a diagnosis waits for one reply.
	tryTime = 5 * time.Second

	// maxAddresses bounds how many addresses of a host are connected to. The
	// others are named, and left out.
	maxAddresses = 8

	// nullCalls is how many NULL calls are made to tell how far the server is.
	nullCalls = 10

	// maxListed bounds the exports that are named in a message.
	maxListed = 20
)

// Step is one thing that Diagnose has tried; nfsbox.Step says more.
type Step struct {
	Name, Detail, Advice string
	Err                  error
	Took                 time.Duration
	Skipped              bool
}

// DiagnoseOptions say what Diagnose tries besides looking.
type DiagnoseOptions struct {
	Read, Write bool
	// LocalIO tries to leave the network out, which is not for this package to do.
	// It has 15 seconds; file, which it may read, is the zero Handle if there is
	// none, or if Read is false. nil: it is left out.
	LocalIO func(ctx context.Context, c *Conn, file vfs.Handle, s *Step) error
}

// Diagnose goes the way of Mount, and of a file's first calls, one step at a
// time, and reports each. It goes on where that makes sense; the error is that
// of the step without which nothing works, or those of the steps that failed
// behind it.
func Diagnose(ctx context.Context, o Options, what DiagnoseOptions, report func(Step)) error {
	if err := checkPath(o.Path); err != nil {
		return err
	}
	if err := o.fill(); err != nil {
		return err
	}
	o.Timeout, o.Retries, o.DialTries, o.DialOnce = tryTime, -1, 1, false
	o.FS.Hard = false
	d := &diagnosis{o: o, what: what, report: report, conn: &Conn{opt: o}}
	err := d.run(ctx)
	if d.conn.rpc != nil {
		err = errors.Join(err, d.conn.rpc.Close())
	}
	if d.mountd != nil {
		d.unmount(ctx)
		err = errors.Join(err, d.mountd.close())
	}
	return err
}

// unmount takes off the server's list what was mounted, also after an interruption.
// It is the courtesy that Conn.umount is.
func (d *diagnosis) unmount(ctx context.Context) {
	if d.conn.mounted == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), umountTime)
	defer cancel()
	_ = d.mountd.umnt(ctx, d.conn.mounted)
	if d.conn.looked {
		_ = d.mountd.umnt(ctx, "/")
	}
}

// diagnosis is a Diagnose under way.
type diagnosis struct {
	o      Options
	what   DiagnoseOptions
	report func(Step)

	addresses []string // of the host; the host itself if a dialer of the caller's resolves it
	local     net.Addr // where a connection came from
	exports   []Export // nil: not known
	mountd    *mountd
	conn      *Conn
	file      string        // a regular file in the root, to be read
	grain     time.Duration // of the server's times
}

// run makes the steps in the order in which each needs those before.
func (d *diagnosis) run(ctx context.Context) error {
	needed := []struct {
		name string
		do   func(context.Context, *Step) error
	}{
		{"resolve", d.resolve},
		{"connect", d.connect},
		{"mount", d.mount},
		{"nfs", d.null},
		{"mount", d.mnt},
		{"fsinfo", d.fsinfo},
		{"getattr", d.getattr},
	}
	for i, s := range needed {
		if err := d.step(ctx, s.name, s.do); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		if i == 0 {
			d.portmap(ctx)
		}
	}
	var failed error
	for _, one := range []func() error{
		func() error { return d.optional(ctx, "lookup", true, d.lookup) },
		func() error { return d.optional(ctx, "list", true, d.list) },
		func() error { return d.localIO(ctx) },
		func() error { return d.optional(ctx, "read", d.what.Read, d.read) },
		func() error { return d.optional(ctx, "write", d.what.Write, d.write) },
	} {
		if interrupted(ctx) {
			return cmp.Or(failed, ctx.Err())
		}
		failed = errors.Join(failed, one())
	}
	return failed
}

// interrupted reports whether the caller wants no more.
func interrupted(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// step makes one step and reports it. One that the caller has cut off says nothing
// about the server: it is the last to be reported, and has not failed.
func (d *diagnosis) step(whole context.Context, name string, do func(context.Context, *Step) error) error {
	if interrupted(whole) {
		return whole.Err()
	}
	ctx, cancel := context.WithTimeout(whole, stepTime)
	defer cancel()
	s := Step{Name: name}
	start := time.Now()
	s.Err = do(ctx, &s)
	s.Took = time.Since(start)
	if s.Err != nil && interrupted(whole) {
		d.report(Step{Name: name, Detail: "interrupted: " + s.Err.Error(), Took: s.Took, Skipped: true})
		return s.Err
	}
	if s.Err != nil && s.Advice == "" {
		s.Advice = d.advise(s.Err)
	}
	d.report(s)
	return s.Err
}

// optional makes a step, on which no other depends, if it is wanted.
func (d *diagnosis) optional(ctx context.Context, name string, wanted bool, do func(context.Context, *Step) error) error {
	if !wanted {
		d.report(Step{Name: name, Skipped: true, Detail: "not asked for"})
		return nil
	}
	if err := d.step(ctx, name, do); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// localIO makes the step that is its caller's.
func (d *diagnosis) localIO(ctx context.Context) error {
	if d.what.LocalIO == nil {
		return nil
	}
	return d.optional(ctx, "local I/O", true, func(ctx context.Context, s *Step) error {
		var file vfs.Handle
		if d.what.Read && d.file != "" {
			r, err := d.find(ctx, d.file)
			if err != nil {
				return err
			}
			file = r.Handle
		}
		return d.what.LocalIO(ctx, d.conn, file, s)
	})
}

// find follows a path from the directory that the mount has led to, and no link out of it:
// that is [vfs.ErrOutside].
func (d *diagnosis) find(ctx context.Context, path string) (vfs.Resolved, error) {
	return vfs.Resolve(ctx, vfs.Inside(d.conn.fs), d.root(), path, true)
}

// root is the directory that the mount has led to.
func (d *diagnosis) root() vfs.Handle { return d.conn.Root() }
