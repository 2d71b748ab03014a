// Command nfsbox is NFS in user space: it looks at, copies and verifies trees on
// NFS servers without a mount and without root, and serves a directory.
//
// The command is thin: it parses, makes one call, and prints. Data goes to stdout; progress and
// messages go to stderr.
package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
	"github.com/nfsbox/nfsbox/internal/tools/queue"
	"github.com/nfsbox/nfsbox/internal/tools/settings"
	"github.com/nfsbox/nfsbox/internal/tools/terminal"
)

// cli is the command line: one struct from which parsing, help, manual pages and
// completion are made.
type cli struct {
	Help helpFlag `help:"Show help for the command (-h, where that means nothing else: its flags alone)."`

	Demo       demoCmd       `cmd:"" help:"Serve a tree on loopback, copy it out over NFS, verify every byte, report."`
	Mount      mountCmd      `cmd:"" help:"Mount what a server exports as a directory (Linux)."`
	Umount     umountCmd     `cmd:"" help:"Unmount it, and say what could not be made stable."`
	Serve      serveCmd      `cmd:"" help:"Serve a directory over NFSv3."`
	Exports    exportsCmd    `cmd:"" help:"List what a server exports."`
	Ls         lsCmd         `cmd:"" help:"List directories."`
	Stat       statCmd       `cmd:"" help:"Show the attributes of files."`
	Cat        catCmd        `cmd:"" help:"Write files to standard output."`
	Find       findCmd       `cmd:"" help:"Find files in trees, by tests of find(1): names, types, sizes, ages, owners."`
	Grep       grepCmd       `cmd:"" help:"Print the lines of files that match a pattern."`
	Du         duCmd         `cmd:"" help:"Sum up what directories take on the disk."`
	Df         dfCmd         `cmd:"" help:"Show the space of file systems."`
	Scan       scanCmd       `cmd:"" help:"Count what lies in trees, and report on it."`
	Cp         cpCmd         `cmd:"" help:"Copy files and trees."`
	Sync       syncCmd       `cmd:"" help:"Make a directory what another one is."`
	Mkdir      mkdirCmd      `cmd:"" help:"Make directories."`
	Rm         rmCmd         `cmd:"" help:"Remove files and trees."`
	Rmdir      rmdirCmd      `cmd:"" help:"Remove empty directories."`
	Mv         mvCmd         `cmd:"" help:"Give objects of a server another name."`
	Ln         lnCmd         `cmd:"" help:"Make hard and symbolic links."`
	Touch      touchCmd      `cmd:"" help:"Set times to now, and make empty files."`
	Chmod      chmodCmd      `cmd:"" help:"Change permissions."`
	Chown      chownCmd      `cmd:"" help:"Change owners and groups."`
	Job        jobCmd        `cmd:"" help:"List, show, resume, change, cancel and forget copies that keep records."`
	Verify     verifyCmd     `cmd:"" help:"Compare two trees, byte for byte."`
	Backup     backupCmd     `cmd:"" help:"Keep a snapshot of a tree in a store."`
	Restore    restoreCmd    `cmd:"" help:"Bring back what is in a snapshot."`
	Snapshots  snapshotsCmd  `cmd:"" help:"Look at the snapshots of a store, and keep them in order."`
	Worker     workerCmd     `cmd:"" help:"Do the work at files for jobs that run on other machines."`
	Bench      benchCmd      `cmd:"" help:"Measure a server."`
	Doctor     doctorCmd     `cmd:"" help:"Find out why a server cannot be reached or used, and say what to do."`
	Top        topCmd        `cmd:"" help:"Show what a server does, in this terminal."`
	Ctl        ctlCmd        `cmd:"" help:"List the clients of a server on this host, and their locks, or drop one."`
	Cache      cacheCmd      `cmd:"" help:"Look at the cache on this host's disk, and clear it."`
	Urls       urlsCmd       `cmd:"" help:"Explain places, the URLs of servers, and their arguments."`
	Man        manCmd        `cmd:"" help:"Make the manual pages."`
	Completion completionCmd `cmd:"" help:"Print a script for completion in a shell."`
	Complete   completeCmd   `cmd:"" hidden:"" help:"Print what a place may become, for completion."`
	Version    versionCmd    `cmd:"" help:"Show the version."`
}

const description = `NFS without a mount and without root: look at, copy and verify trees, and serve a directory.

A PLACE is a path of this host or a URL:

  nfs://HOST[:PORT]/EXPORT/PATH[?ARG=VALUE&...]

  nfsbox demo                             # serves, copies, verifies a tree
  nfsbox serve ./photos                   # the first line is its URL
  nfsbox ls -l nfs://filer/export/a
  nfsbox cp -r nfs://filer/export/a ./a   # after Ctrl-C it goes on, run again
  nfsbox doctor nfs://filer/              # what is wrong, and what to do

HOST:/EXPORT/PATH, as mount(8) has it, is nfs://HOST/EXPORT/PATH, unless a file here has that very name;
./HOST:/... is always a path of this host.

At PORT the server answers NFS and MOUNT; its portmapper is not asked. ARGs are those of libnfs (uid, gid,
version, nfsport, mountport, timeo, retrans, readonly, ...). nfsbox help urls has them all, and what
patterns in PATH mean.

Of a server only that is known which lies below the mounted directory. A symbolic link on the way is
followed within that, and one at the end of PATH within the directory that it is in. One that leads further
out is an error: name what it leads to. A link at the end to a directory that the server mounts stands for
that directory, also for cp and stat, which take other links as they are.

Data goes to stdout, progress and messages go to stderr. With --json every event is one line of JSON, which
begins with its "time" and "type"; the last line is of "type":"summary". An error has a code, such as
"ENOENT", and a message. docs/json.md describes all events.

On a terminal help, messages and reports are broken at its width. Names, and commands to be typed, stay whole.

cp, sync and verify show their progress: on a terminal in one line that fits its width, else in a line every ten
seconds. Totals have a ≥ before them until all directories are listed; then a percentage and an estimate of
the time left are shown. Of each server the calls under way are shown, of how many it may have ("read 12/16",
of the kind that has the most; "idle" if there are none), and how often one was too busy. In the end they say what was copied, verified, skipped, not preserved or
different, and what has failed.

A server that has not answered for 5 seconds is reported, with the time at which the wait for it ends, and
again when it answers; so is a bucket that refuses all requests for a while. With --json these are lines of
"type":"silent" (server, since, until, message; until is missing if nothing but an answer ends the wait) and of
"type":"answers" (server, since, message).

EXIT STATUS

Each command's own help says more.

  0      done
  1      the arguments or the configuration are wrong
  2      some items failed, are not there or may not be looked at, and are listed; or the output cannot be written
  3      verification has compared everything, and found differences
  4      a source or destination cannot be reached: its server, or what that exports
  130    a signal has ended it before it was done
  141    the reader of the output has gone

Of arguments that fail, each in its way, the highest status counts. grep ends as grep(1) does: with 1 if nothing
was found, and with 2 if anything is wrong.

FILES

~/.config/nfsbox/nfsbox.toml has settings for all commands but serve, which has a file of its own: short
names of places, defaults of flags, and arguments of URLs by server. What is wrong in it is an error, with its
line, before anything is done. docs/settings.md has more.

  [alias]
  filer = "nfs://10.0.0.5/export?uid=1000"   # filer:home is below it
  [flags]
  progress = "lines"                         # of all commands that have it
  [flags.cp]
  verify = true                              # of one
  [server."10.0.0.5"]                        # "*" is any
  max-load = 16

Records of copies are below ~/.local/state/nfsbox: see nfsbox job --help.

ENVIRONMENT

NFSBOX_CP_VERIFY=true sets a flag of one command, NFSBOX_VERIFY=true that of all commands which have it. The
command line comes first, then the environment, then the file. NFSBOX_CONFIG names another file; if it
is empty there is none. XDG_CONFIG_HOME stands for ~/.config, XDG_STATE_HOME for ~/.local/state. NO_COLOR
leaves out colours, LS_COLORS has those of ls.`

// helpFlag prints help instead of running the command. It is not kong's own, whose -h would
// take that letter from ls.
type helpFlag bool

// BeforeReset is called by kong as soon as the flag has been read.
func (helpFlag) BeforeReset(ctx *kong.Context) error {
	if err := ctx.PrintUsage(false); err != nil {
		return err
	}
	ctx.Exit(exitOK)
	return nil
}

// env is a command's environment.
type env struct {
	ctx     context.Context
	stdout  io.Writer
	stderr  io.Writer
	stdin   *os.File                   // if it is a terminal, whose keys a command may read; else nil
	tty     bool                       // stderr is a terminal
	size    func() (width, height int) // of the terminal that stdout is; nil: it is none
	errSize func() (width, height int) // of the terminal that stderr is; nil: it is none
	colour  bool                       // a terminal may be written to in colours
	rand    func([]byte)
	set     func() (*settings.Settings, error) // what the user has set; nil: nothing
	environ []string                           // whose names may be misspelt ones of ours; nil: none
	alone   bool                               // the process runs this command only, which may change its limits
	name    string                             // the name under which the program was called; "" is nfsbox
	args    []string
	brief   bool   // help is asked for by -h
	resumes string // the record by which nfsbox job resume runs it, in the directory of that; "": it does not

	broker func(urls string) (queue.Broker, error) // of workers, in tests; nil: a NATS server

	interrupt func() // ends the command as a signal would; nil: nothing else may
}

// interruptible lets something else than a signal end the command. What ends it is called e.interrupt.
func (e *env) interruptible() {
	ctx, cancel := context.WithCancel(e.ctx)
	e.ctx, e.interrupt = ctx, cancel
}

// doubled is how long after the first signal a second one is ignored: timeout(1) signals the
// process, and then its group.
const doubled = 500 * time.Millisecond

func main() {
	// The first signal ends the context, and whatever runs cleans up and
	// reports. The second ends the process.
	base, cancel := context.WithCancelCause(context.Background())
	ctx, stop := signal.NotifyContext(base, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { time.AfterFunc(doubled, stop) })
	// A closed pipe ends the context, too. Otherwise SIGPIPE would kill the process before
	// it can clean up.
	signal.Ignore(syscall.SIGPIPE)
	gone := func() { cancel(errPipe) }
	status := run(&env{
		ctx:     ctx,
		stdout:  pipe{os.Stdout, gone},
		stderr:  pipe{os.Stderr, gone},
		stdin:   keyboard(),
		tty:     isTerminal(os.Stderr),
		size:    terminal.Size(os.Stdout),
		errSize: terminal.Size(os.Stderr),
		colour:  os.Getenv("NO_COLOR") == "",
		rand:    func(p []byte) { _, _ = rand.Read(p) }, // crypto/rand.Read never fails
		set:     userSettings(),
		environ: os.Environ(),
		alone:   true,
		name:    os.Args[0],
	}, os.Args[1:])
	os.Exit(status)
}

// keyboard is standard input, if that is a terminal.
func keyboard() *os.File {
	if terminal.Size(os.Stdin) == nil {
		return nil
	}
	return os.Stdin
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

func run(e *env, args []string) int {
	args = helper(e.name, args)
	status := runCommand(e, args)
	if len(args) > 0 && args[0] == "grep" {
		return grepStatus(status)
	}
	return status
}

func runCommand(e *env, args []string) int {
	e.args = args
	raw := e.stderr
	e.stderr = e.messages()
	set := &resolver{read: e.set, from: make(map[string]string)}
	words := customary(args)
	e.brief = brief(args, words)
	parser, exited, err := newParser(e, set, words)
	if err != nil {
		return report(e, err)
	}
	kctx, err := parser.Parse(words)
	if *exited {
		return exitOK // --help has printed everything
	}
	if broken, is := errors.AsType[*outputError](err); is {
		return report(e, broken) // of --help
	}
	if set.err != nil {
		err = set.err
	}
	if err == nil && settable(kctx.Selected()) && !kctx.Selected().Hidden {
		err = e.strays()
	}
	if err == nil {
		err = e.meantAll(kctx.Selected())
	}
	if err != nil {
		return report(e, usageError(parser, args, err, set.source(err)))
	}
	// A closed terminal ends the command like an interruption, unless nohup(1) has SIGHUP
	// ignored. serve reloads its configuration instead.
	if e.alone && kctx.Selected().Name != "serve" && !signal.Ignored(syscall.SIGHUP) {
		var stop context.CancelFunc
		e.ctx, stop = signal.NotifyContext(e.ctx, syscall.SIGHUP)
		context.AfterFunc(e.ctx, func() { time.AfterFunc(doubled, stop) }) // a second one ends the process
		defer stop()
	}
	if e.alone {
		boundMemory(kctx.Command())
	}
	if kctx.Selected().Name == "serve" {
		folded := e.stderr
		e.stderr = raw // which gets a log
		err := kctx.Run(e)
		e.stderr = folded
		return statusOf(e, err) // a signal is how it ends
	}
	return report(e, set.sourced(kctx.Run(e)))
}

// customary replaces arguments that people type by habit: help as a command, and --version.
func customary(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "help":
		return append(slices.Clone(args[1:]), "--help")
	case args[0] == "--version":
		return append([]string{"version"}, args[1:]...)
	case args[0] == "ls" || args[0] == "du" || args[0] == "df":
		return args // their -h is another one
	case args[0] == "grep":
		return append([]string{"grep"}, grepArgs(args[1:])...) // so is its
	case args[0] == "find":
		args = append([]string{"find"}, findArgs(args[1:])...)
	}
	args = slices.Clone(args)
	for i, arg := range args {
		switch arg {
		case "--":
			return args
		case "-h":
			args[i] = "--help"
		}
	}
	return args
}

// usageError is an error of the command line; source says where it was set, if elsewhere.
func usageError(parser *kong.Kong, args []string, err error, source string) error {
	node := parser.Model.Node
	var pe *kong.ParseError
	if errors.As(err, &pe) && pe.Context != nil && pe.Context.Selected() != nil {
		node = pe.Context.Selected()
	}
	command := node.FullPath()
	if pe != nil {
		err = meant(node, args, err)
	}
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) && command == "nfsbox serve" {
		if advice := config.Misplaced(pathErr.Path); advice != "" {
			err = fmt.Errorf("%w: %s", err, advice)
		}
	}
	return &exitError{status: exitUsage, err: fmt.Errorf("%w%s; see %s --help", err, source, command)}
}

type versionCmd struct{}

func (versionCmd) Help() string {
	return `Shows the program's version, that of Go, and the system that it was built for. A version without a tag has the
time and the commit that the program was built from (v0.0.0-20261128193917-ba5fb3f21541), and +dirty if more was
changed; (devel) is one built outside a clone, in a worktree, or with -buildvcs=false.

  nfsbox version`
}

func (*versionCmd) Run(e *env) error {
	if _, err := fmt.Fprintf(e.stdout, "nfsbox %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH); err != nil {
		return &outputError{err}
	}
	return nil
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "(unknown)"
	}
	return info.Main.Version
}

// commitDate is the day of the commit that the program was built from, or that of SOURCE_DATE_EPOCH, as what makes
// packages sets it; "" if neither is known.
func commitDate() string {
	if epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64); err == nil {
		return time.Unix(epoch, 0).UTC().Format(time.DateOnly)
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, x := range info.Settings {
		if x.Key == "vcs.time" {
			day, _, _ := strings.Cut(x.Value, "T")
			return day
		}
	}
	return ""
}

// errPipe ends a command whose output has no reader any more, as in
// "nfsbox cp --json ... | head -1". The command ends as if interrupted, and cleans up.
var errPipe = errors.New("the reader of the output has gone")

// exitPipe is the status that a shell shows for a command that SIGPIPE has killed.
const exitPipe = 128 + int(syscall.SIGPIPE)

// pipe is an output whose reader may close it.
type pipe struct {
	io.Writer
	gone func() // called when that has happened
}

func (p pipe) Write(b []byte) (int, error) {
	n, err := p.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		p.gone()
	}
	return n, err
}
