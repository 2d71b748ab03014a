package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/mounter"
	"github.com/nfsbox/nfsbox/internal/tools/mountopt"
	"github.com/nfsbox/nfsbox/internal/tools/place"
	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// The exit statuses of mount, which are those of mount(8).
const (
	exitSystem = 2  // this host cannot mount
	exitMount  = 32 // the server, or what it exports
)

type mountCmd struct {
	Spec       string   `arg:"" name:"SPEC" help:"nfs://host/export/path, host:/export/path, [address]:/export/path, or STORE::NAME[@ID][/PATH], a snapshot."`
	Dir        string   `arg:"" name:"DIR" help:"An existing directory."`
	Options    []string `short:"o" sep:"none" placeholder:"OPTIONS" help:"Options of nfs(5) and mount(8), and arguments of URLs, with commas; may be given several times."`
	Foreground bool     `help:"Stay until it is unmounted, or a signal ends it, which unmounts."`
	Fake       bool     `short:"f" help:"Check the arguments, print the URL that they mean, and end without mounting, as mount -f does."`
	JSON       bool     `help:"Print one line of JSON when the mount answers, in the foreground another when it has ended, then a summary."`
	Behind     bool     `hidden:"" name:"in-background" help:"Be the process in the background."`
}

func (*mountCmd) Help() string {
	return mountHelp + "\n\nThese are known, beside the arguments of URLs (nfsbox help urls):\n\n" + columns(mountopt.Known())
}

// columns are words in lines that fit a page.
func columns(words []string) string {
	const width = 76
	var b strings.Builder
	at := 0
	for _, w := range words {
		if at > 0 && at+1+len(w) > width {
			b.WriteByte('\n')
			at = 0
		}
		if at == 0 {
			w = "  " + w
		} else {
			w = " " + w
		}
		b.WriteString(w)
		at += len(w)
	}
	return b.String()
}

const mountHelp = `Mounts what SPEC names at DIR, on Linux, in user space (FUSE): by root for all users, by others for themselves
alone. It returns when the mount answers; a process in the background goes on until DIR is unmounted.

  nfsbox mount filer:/export/home /mnt
  nfsbox mount nfs://127.0.0.1:2049/ /mnt -o soft,timeo=50
  nfsbox mount /backup::home /mnt
  nfsbox umount /mnt

  # in /etc/fstab, where /sbin/mount.nfsbox leads to this program
  filer:/export/home  /home  nfsbox  rw,hard,intr,_netdev  0 0

Every call is made as the user whose program makes it, with all that user's groups: the server judges. If SPEC
says uid= or gid=, all calls are made as that user.

A close and an fsync return when the server has made the bytes stable, or say why not. An open asks the server
whether the file has changed (close-to-open). Otherwise attributes are up to 60 seconds old: ac*, actimeo and
noac change that, as in nfs(5).

A server that does not answer is waited for (hard), unless soft or softerr says otherwise. Whatever waits can be
killed, and DIR be unmounted.

A snapshot is mounted read-only: ro is implied, and has to stand in fstab; rw is refused. So are nosuid and nodev implied. Without
an ID it is the newest complete one of that name, and stays that one. What the store cannot give is an input/output
error. Root's mount lets each user see what the snapshot's modes and lists allow; a user's own shows all.

OPTIONS

Those of nfs(5) are honoured, or ignored with a note (intr: it always holds), or refused in words. Of mount(8)
ro, nosuid, nodev, noexec, noatime and their like are the kernel's, and what is for others is passed over
(_netdev, nofail, user, x-*, ...). All arguments of URLs are options, too. An option that is not known is an
error, but with sloppy a note. docs/mount.md says what each does.

A server that cannot be reached is tried again for two minutes; retry=MINUTES says how long, and 0 not at all.
With bg that goes on in the background.`

// mountEvent is a mount that answers, in JSON.
type mountEvent struct {
	Source   string   `json:"source"`
	Snapshot string   `json:"snapshot,omitempty"` // NAME@ID of what is mounted, if it is one
	Dir      string   `json:"dir"`
	PID      int      `json:"pid"`
	Locks    string   `json:"locks"`           // by fcntl(2): "server", or "local"
	Flock    string   `json:"flock"`           // by flock(2), likewise
	Notes    []string `json:"notes,omitempty"` // on options that were ignored
}

// checkedEvent is a mount that was only asked for (-f), in JSON.
type checkedEvent struct {
	URL   string   `json:"url"`
	Dir   string   `json:"dir"`
	Notes []string `json:"notes,omitempty"` // on options that were ignored
}

// unmountEvent is a mount that has ended, in JSON.
type unmountEvent struct {
	Dir      string   `json:"dir"`
	Bytes    uint64   `json:"bytes_lost"` // that the server has not confirmed
	Files    int      `json:"files"`      // that were being closed
	Problems []string `json:"problems,omitempty"`

	Elsewhere bool `json:"elsewhere"` // another mount namespace has it as well, and it goes on there
}

func (c *mountCmd) Run(e *env) error {
	m, err := mounter.Parse(c.Spec, c.Options...)
	if err != nil {
		return &exitError{status: exitUsage, err: err}
	}
	out := newOutput(e, c.JSON)
	note := out.note
	if !c.Foreground && !c.Behind && !c.Fake {
		return c.behind(e)
	}
	for _, text := range m.Notes {
		note(text)
	}
	if c.Fake {
		return mountFailed(c.fake(out, m))
	}
	w := out.onSilence()
	o := mounter.Options{Mount: m, Dir: c.Dir, Rand: e.rand, Dial: watched(e, w), Silent: w.Bucket}
	o.Note = func(text string) { note(text) }
	done := false
	o.Ready = func(at *mounter.Mounted) (err error) {
		if done {
			return nil // with bg
		}
		if at != nil {
			err = c.mounted(out, at, m.Notes)
		}
		if done = true; c.Behind && err == nil {
			if c.JSON {
				err = out.end(nil)
			}
			if err == nil {
				note, err = mounter.Detach()
			}
		}
		return err
	}
	r, err := mounter.Run(e.ctx, o)
	if err != nil {
		return mountFailed(err)
	}
	if c.Behind {
		for _, text := range r.Problems {
			note(text)
		}
		return nil
	}
	return out.end(unmounted(out, c.Dir, r))
}

// fake says what would be mounted where.
func (c *mountCmd) fake(out *output, m *mountopt.Mount) error {
	dir, err := mounter.CheckDir(c.Dir, true, out.note)
	if err != nil {
		return err
	}
	if c.JSON {
		if err := out.event("checked", &checkedEvent{URL: m.URL, Dir: dir, Notes: m.Notes}); err != nil {
			return err
		}
		return out.end(nil)
	}
	return errors.Join(out.text(progress.Clean(m.URL)+" "+progress.Clean(dir)+"\n"), out.flush())
}

// mounted says that the mount answers.
func (c *mountCmd) mounted(out *output, m *mounter.Mounted, notes []string) error {
	x := mountEvent{Source: m.Source, Snapshot: m.Snapshot, Dir: m.Dir, PID: os.Getpid(), Locks: holder(m.Posix), Flock: holder(m.Flock), Notes: notes}
	var err error
	switch {
	case c.JSON:
		err = out.event("mounted", &x)
	case c.Foreground:
		err = out.text(progress.Clean(m.Source) + " is mounted at " + progress.Clean(m.Dir) + "\n")
	}
	return errors.Join(err, out.flush())
}

// holder is who holds locks.
func holder(server bool) string {
	if server {
		return "server"
	}
	return "local"
}

// behind has a process in the background mount, and waits until it does.
func (c *mountCmd) behind(e *env) error {
	args := []string{"mount", "--in-background"}
	if c.JSON {
		args = append(args, "--json")
	}
	for _, o := range c.Options {
		args = append(args, "--options="+o)
	}
	status, err := mounter.Background(e.ctx, append(args, "--", c.Spec, c.Dir), os.Stdout, os.Stderr)
	if err != nil {
		return mountFailed(err)
	}
	if status != exitOK {
		return &exitError{status: status} // which has been explained
	}
	return nil
}

// mountFailed is an error with the status that mount(8) has for it.
func mountFailed(err error) error {
	if err == nil {
		return nil
	}
	if broken, is := errors.AsType[*outputError](err); is {
		return broken
	}
	status := exitMount
	if _, system := errors.AsType[*mounter.SystemError](err); system {
		status = exitSystem
	}
	if errors.Is(err, place.ErrUsage) {
		status = exitUsage
	}
	what := advice(err, exitUnreachable)
	if own, is := errors.AsType[interface {
		error
		Advice() string
	}](err); is && what == "" {
		what = own.Advice()
	}
	return &exitError{status: status, err: &advised{err, what}}
}

// unmounted says how a mount has ended.
func unmounted(out *output, dir string, r *mounter.Report) error {
	x := unmountEvent{Dir: dir}
	if r != nil {
		x.Bytes, x.Files, x.Problems, x.Elsewhere = r.Bytes, r.Files, r.Problems, r.Elsewhere
	}
	if x.Elsewhere {
		out.note(dir + " is unmounted here, but a container or a service with mounts of its own has it too: there it goes on")
	}
	if out.json {
		if err := out.event("unmounted", &x); err != nil {
			return err
		}
	}
	if r == nil || !r.Lost() {
		return nil
	}
	return &exitError{status: exitIncomplete, err: fmt.Errorf("%s is unmounted, but not all was made stable: %w", dir, errors.New(strings.Join(r.Problems, "; ")))}
}

type umountCmd struct {
	Dirs  []string `arg:"" name:"DIR" help:"A directory on which an nfsbox is mounted."`
	Lazy  bool     `short:"l" help:"Let the directory disappear at once; the mount ends when nobody uses it any more."`
	Force bool     `short:"f" help:"Have what waits for the server fail, and give up what is not stable."`
	JSON  bool     `help:"Print one line of JSON for each, then a summary."`
}

func (*umountCmd) Help() string {
	return `Unmounts what nfsbox mount has mounted, and waits until everything that was written is stable; if it is not, that
is an error, and it says what was lost. A server that does not answer is waited for as long as it makes progress,
and 10 seconds more. A mount that a container or a service with mounts of its own has as well goes on there, which is
said after 5 seconds. umount(8) unmounts as well.

  nfsbox umount /mnt
  nfsbox umount -l /mnt   # though programs use it
  nfsbox umount -f /mnt   # though the server does not answer`
}

func (c *umountCmd) Run(e *env) error {
	out := newOutput(e, c.JSON)
	var worst error
	for _, dir := range c.Dirs {
		r, err := mounter.Unmount(e.ctx, dir, mounter.Unmounting{Lazy: c.Lazy, Force: c.Force})
		if err == nil {
			err = unmounted(out, dir, r)
		}
		if err != nil {
			out.failed(dir, err)
			worst = worse(worst, err)
		}
	}
	return out.end(worst)
}

// helper has the arguments of a helper of mount(8) or umount(8), if the program is called by such a name, as ours:
// SPEC DIR [-sfnv] [-N namespace] [-o options] [-t type].
func helper(name string, args []string) []string {
	command := ""
	switch path.Base(name) {
	case "mount.nfsbox", "mount.fuse.nfsbox":
		command = "mount"
	case "umount.nfsbox", "umount.fuse.nfsbox":
		command = "umount"
	default:
		return args
	}
	to := []string{command}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == "-t" || a == "-N":
			i++ // of mount(8), which has been there
		case a == "-o" && command == "mount" && i+1 < len(args):
			i++
			to = append(to, "--options="+args[i])
		case len(a) > 1 && a[0] == '-' && strings.Trim(a[1:], "sfnvrl") == "":
			to = append(to, letters(command, a[1:])...)
		default:
			to = append(to, a)
		}
	}
	return to
}

// letters are the flags of a helper that mean something here.
func letters(command, flags string) (to []string) {
	for _, f := range flags {
		switch {
		case f == 's' && command == "mount":
			to = append(to, "--options=sloppy")
		case f == 'f':
			to = append(to, "-f")
		case f == 'l' && command == "umount":
			to = append(to, "-l")
		}
	}
	return to
}
