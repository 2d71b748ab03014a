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
	// stepTime bounds each step of a diagnosis. At the bound it has failed.
	stepTime = 15 * time.Second

	// tryTime is how long a diagnosis waits for one reply.
	tryTime = 5 * time.Second

	// maxAddresses bounds how many addresses of a host are tried. Further ones are only
	// listed.
	maxAddresses = 8

	// nullCalls is how many NULL calls measure the round trip.
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
	// LocalIO tries local I/O, which is outside this package. It has 15 seconds. file,
	// which it may read, is the zero Handle if there is none or Read is false. nil: the
	// step is left out.
	LocalIO func(ctx context.Context, c *Conn, file vfs.Handle, s *Step) error
}

// Diagnose makes the steps of Mount, and of the first calls for a file, one at a time, and
// reports each. It goes on as long as later steps can succeed. The error is that of the step
// without which nothing works, or those of the failed steps after it.
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

// unmount sends UMNT for what was mounted, also after an interruption. Like Conn.umount it is a
// courtesy.
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

// diagnosis is a running Diagnose.
type diagnosis struct {
	o      Options
	what   DiagnoseOptions
	report func(Step)

	addresses []string // the host's; the host itself if the caller's dialer resolves it
	local     net.Addr // the local address of a connection
	exports   []Export // nil: not known
	mountd    *mountd
	conn      *Conn
	file      string        // a regular file in the root, to be read
	grain     time.Duration // resolution of the server's times
}

// run makes the steps. Each needs those before it.
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

func interrupted(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }

// step makes one step and reports it. A step that the caller interrupts says nothing about the
// server: it is the last one reported, and has not failed.
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

// optional makes a step that no other depends on, if wanted.
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

// localIO makes the caller's step.
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

// find follows a path from the mounted directory. A link that leads out of that is
// [vfs.ErrOutside].
func (d *diagnosis) find(ctx context.Context, path string) (vfs.Resolved, error) {
	return vfs.Resolve(ctx, vfs.Inside(d.conn.fs), d.root(), path, true)
}

func (d *diagnosis) root() vfs.Handle { return d.conn.Root() }
