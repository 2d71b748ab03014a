package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/nfsbox/nfsbox/internal/server/daemon"
	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

type serveCmd struct {
	Dir   string `arg:"" optional:"" name:"DIR" help:"The directory to serve, or nfs://server/export, the export of another server to stand for."`
	File  string `name:"config" short:"c" placeholder:"FILE" help:"Read nfsbox.toml, whose keys are these flags; flags replace what it says." type:"existingfile"`
	Check bool   `help:"Check the configuration and the files that it names, and end: all that is wrong is named, with its line."`
	Show  bool   `help:"Check likewise, print what holds, with the defaults, and end."`

	config.Export `group:"Exports:"`
	config.Config `group:"Server:"`
}

func (*serveCmd) Help() string { return serveHelp }

// serveHelp has headings as a manual page has them: lines in capitals.
const serveHelp = `Serves DIR, or what a configuration lists, over NFSv3 until it is interrupted. NFS, MOUNT, the lock
manager and a port mapper answer on one port. The only line on stdout is a URL: that of the first
export, at the first address.

  nfsbox serve ./photos
  mount -t nfs -o vers=3,tcp,nolock,port=2049,mountport=2049 127.0.0.1:/ /mnt

  nfsbox serve /srv --listen :2049 --portmap-listen :111 --allow 10.0.0.0/8
  mount -t nfs -o vers=3 HOST:/ /mnt

  nfsbox serve -c nfsbox.toml --check   # names all that is wrong, or says OK
  nfsbox serve -c nfsbox.toml --show    # names what holds, with the defaults

CLIENTS OF OTHER HOSTS

By default the server listens on loopback. With an address that others can reach, root of a client
becomes nobody (--squash root). --allow says who may mount at all, and see what there is (showmount,
rpcinfo -p); without it anybody may. The environment variable NFSBOX_ALLOW, a list with commas, stands
for it where DIR is served without --config; if it is there and empty the server does not begin.

AUTH_SYS proves nothing: let it in from networks that you trust. With --secure only ports that take root
on the client are believed. The log warns of --squash none where others than root could profit by it.

USERS OF THIS HOST

A program of this host is taken for the user who runs it, as the kernel knows by its socket, with the
groups that this host gives that user, whatever user it says it is. Root, the kernel's own mounts, and
the user who runs the server may speak for others. --trust-local believes all programs of this host
instead, as behind a tunnel whose far end is to be believed. Where the kernel cannot tell (it is no
Linux, or inet_diag is missing: the log says so), they are believed, but for root. Over UDP they are
nobody.

Where the kernel can tell, each user of this host is a client of its own, from whatever address of it:
with its own share of connections and of the memory of calls and replies, with replies that nobody else
gets, and with locks that nobody else frees. Those who are believed are so by address, as clients of
other hosts are, and free all locks of their address when they say that it has restarted (FREE_ALL,
SM_NOTIFY). In logs and nfsbox ctl a user stands before its address (1000@127.0.0.1:700).

RIGHTS ON THE DISK

Run as root, the server opens and makes files with the rights of the calling user. Run as anyone else,
it does everything as that user, who owns what is made; the log says so. Others then set no set-uid
bits, nor set-gid bits of groups that they are not in: they get the file without.

WHAT IS PROMISED

What is acknowledged as stable has been synced, names included, unless --async gives that up.

Handles stay valid over renames and restarts. They are the kernel's where its file systems and the
process' rights allow, which takes root. Elsewhere a map of them is kept in the state directory.

A file that a program of this host moves out of DIR may stay open to clients that have its handle, as
with the kernel's server (no_subtree_check): a handle names the file and not a path, and to look for a
path from DIR with every call would cost more than the calls. A directory does not stay open. What must
be out of reach is copied and removed, or given rights that keep clients out.

THE STATE DIRECTORY

It is /var/lib/nfsbox for root, else $XDG_STATE_HOME/nfsbox or ~/.local/state/nfsbox. It must not lie
within what is served, even if a second mount (bind) shows it elsewhere. It is refused if others can
write to it, by its mode or an access list, or if it belongs to another user than the server's, or root:
they could put a key that they know in its place. It is best made by the server, or mode 0700; one that
is sticky, as /tmp, will do. The same holds of each directory and symbolic link on the way to it, by
which others could move it away, unless --trust-state-path says that they are trusted.

LOCALIO

An nfsbox on this host finds out that it is (LOCALIO), and reads, writes and commits by descriptors
instead of over the network. It gets them through a socket in --localio-dir (/run/nfsbox for root, else
$XDG_RUNTIME_DIR/nfsbox; containers share the directory as a volume), after the same rules and squash,
as the user whom the kernel knows it to be. What is read-only cannot be changed by them. A file that is
removed or replaced, and rights that change, take descriptors back, which is a promise of our client's:
a process that has one and is not ours may keep it.

An export keeps its files to itself with localio = false in the configuration; --localio=off does for
all. --localio=trusted hands descriptors also to processes that could do more by them than their caller
may over the network, such as a root that is squashed. Without the directory there is no local I/O, and
the log says so at level info.

THE CONFIGURATION

The configuration (-c) is TOML. Its keys are the flags, by the same names, but that in the tables
log and api they leave these names out; times stand in quotes, with their unit. A key that does not
exist, or a value that will not do, is an error with its line. packaging/nfsbox.toml has them all.

Each directory is a table [[export]] with path, dir and any of the flags for exports, and with rules for
single clients where they differ: clients = [{match = "10.0.0.7", ro = true}]. Without allow only those
may mount, and allow = ["*"] beside them lets everybody else in by the export's own rule. On the command
line the flags for exports hold for every export.

Rules hold for the way in: a client that may use /a reaches /a/sub through it, by the rules of /a,
though /a/sub be an export with stricter ones, as with the kernel's server, and though a second mount
(bind) show it elsewhere. So do two exports of one directory, of which the wider rules hold. Such
directories are to be kept apart: the log names each at a start and a reload, and so does --check.

ANOTHER SERVER

nfs://server/export in place of DIR (from in a configuration) stands for the export of another NFSv3
server. Its callers pass on as themselves, after the rules here; the other server judges their rights, and
holds their locks. --cache keeps what is read on this host's disk. What is stable is so there, and handles
survive restarts of either side; where they are too long to be sealed the start says so, and --handles
verbatim hands them out as they are.

A server that does not answer for five seconds keeps nobody waiting: clients are told to come again
(NFS3ERR_JUKEBOX) until it does. With --offline TIME attributes, rights and names that it told within TIME
are told on meanwhile, and what the cache has is read. A start goes on without a server that was reached
before; one that never was is refused, since it may be a mistake. docs/proxy.md has more, and how hosts without
FUSE mount it.

  nfsbox serve nfs://filer/export --cache /ssd/nfs \
      --listen :2049 --portmap-listen :111

SIGNALS

SIGHUP reads the configuration again and goes over to its exports, rules, log level and threshold for
slow calls, without losing a client; what takes a restart is named in the log, and a configuration with
an error changes nothing. A directory that was replaced, or mounted over, is served as it is then, and
handles of the old one are stale; with mountpoint an export is left out while nothing is mounted there.
SIGHUP also opens the files of the logs anew.

A first SIGINT or SIGTERM lets calls under way finish (--drain-timeout), and leaves what must be
remembered to the next start; another one, half a second later or more, ends at once.

SERVICE MANAGERS

The sockets of socket activation (LISTEN_FDS) take the place of --listen and --portmap-listen, and one
with a port of --api that of it, and stay open over a restart: clients notice a pause, and no error.
Readiness, reloads and the watchdog are told to NOTIFY_SOCKET. See packaging/nfsbox.service and
nfsbox.socket.

THE FILE API

--api 127.0.0.1:9999 serves the exports over HTTP, too, to curl, browsers and programs: by the same
rules, through the same gate. --api-callers FILE says who may call, by token or certificate, and as whom;
--api-loopback UID:GID lets every program of this host call as that user. One of them it takes, but
where a user who is not root serves a directory by hand, on loopback: then that user's programs, and
root's, call as that user, and with --trust-local those of all users of this host. SIGHUP reads the
files of callers and certificates again. Its calls count as the server's, in metrics and in the live
view. See docs/file-api.md.

  nfsbox serve ./photos --api 127.0.0.1:9999
  curl -T holiday.jpg http://127.0.0.1:9999/  # browsers show the same address
  curl -u x:TOKEN https://host:9999/holiday.jpg -O

THE LIVE VIEW

--http 127.0.0.1:9465 serves a page of charts, of what the server does now and has done in the last
minutes: calls and their latency, threads, the way to the disk, bounds, LOCALIO, the clients and files
that are busiest, and the slowest calls of all that took a millisecond or more, with their files. Of
which file, and how long, is told by a sample: all calls of a quiet server, and a thousand of a busy
one's in two seconds. nfsbox top shows the same in a terminal. The page changes
nothing, asks nobody who he is, and tells names of exports and addresses of clients: at an address that
others can reach, the log warns of it.

LOGS

The log goes to stderr, or to --log-file. It says what begins and at which addresses, what is exported
to whom, who mounts what, whom the rules refuse, with the rule, who had no proof for the file API, and
how the end went. Of what one client repeats there is a line in ten seconds, and of refusals there are
20 of each kind; left_out in the next line says how many more there were. An error has a code beside it
(ENOSPC), as with --json in other commands. --slow adds to it each call that took longer, but for those of
the file API that moved more than 1 MiB.

--log-requests FILE is a log of clients' calls: of --log-sample of them one, picked by chance, on a line
with its procedure, path, client, uid (as AUTH_SYS says), XID, time in all (took) and until work on it
began (waited), bytes in and out, and the status of its answer; failed=true says that RPC itself refused
it. The path is that of the file as it is called when the line is written, or as the call names it in
its directory; of a file that the server does not keep open there is the handle instead. A slow call
in the other log has the same fields. A call of the file API has its caller's name, and no
XID. In JSON times are nanoseconds.

Files are put aside as name-TIME.ext when they reach --log-max-size, and with --log-max-age when they
are a day old; with --log-max-size 0 another program does that, and sends SIGHUP. A full disk holds up
nobody: what cannot be written, or is more than the log of requests takes, is lost, and counted
(nfsbox_log_dropped_total; left_out in the next line of the log of requests).

METRICS AND HEALTH

--metrics 127.0.0.1:9464 serves /metrics for Prometheus. Its address and that of --http have /healthz,
which is 200 while clients are served and 503 from the first signal on.`

// Validate refuses what is neither a directory nor another server's.
func (c *serveCmd) Validate() error {
	if c.Dir == "" || config.IsURL(c.Dir) {
		return nil
	}
	c.Dir = kong.ExpandPath(c.Dir)
	info, err := os.Stat(c.Dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%q exists but is not a directory", c.Dir)
	}
	return err
}

func (c *serveCmd) flags(k *kong.Context) config.Flags {
	f := config.Flags{Config: c.Config, Export: c.Export, Given: make(map[string]bool), Dir: c.Dir, File: c.File}
	if config.IsURL(c.Dir) {
		f.Dir, f.From = "", c.Dir
	}
	for _, part := range k.Path {
		if part.Flag != nil {
			f.Given[part.Flag.Name] = true
		}
	}
	return f
}

func (c *serveCmd) Run(e *env, k *kong.Context) error {
	flags := c.flags(k)
	if err := allowed(&flags, os.LookupEnv); err != nil {
		return &exitError{status: exitUsage, err: err}
	}
	conf, err := config.Load(flags)
	if err != nil {
		if c.Check && conf != nil {
			err = config.InOrder(c.File, errors.Join(err, daemon.CheckFiles(conf, daemon.World{Locate: flags.Locate})))
		}
		return &exitError{status: exitUsage, err: err}
	}
	world := daemon.World{
		Rand: e.rand, Log: e.stderr, File: c.File, Version: version(),
		Reread:  func() (*config.Config, error) { return config.Load(flags) },
		Locate:  flags.Locate,
		Manager: daemon.Manager{Getenv: os.Getenv, PID: os.Getpid()}, Alone: e.alone,
	}
	if c.Check || c.Show {
		if err := daemon.Check(*conf, world); err != nil {
			return &exitError{status: exitUsage, err: config.InOrder(c.File, err)}
		}
		if c.Show {
			return printConfig(e.stdout, conf)
		}
		some := "s"
		if len(conf.Exports) == 1 {
			some = ""
		}
		_, err := io.WriteString(e.stdout, e.fold(fmt.Sprintf("%s: OK, %d export%s\n", cmp.Or(c.File, c.Dir), len(conf.Exports), some), 2))
		return err
	}
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	world.Reload = hangup
	err = daemon.Serve(e.ctx, *conf, world, func(r daemon.Running) error {
		_, err := fmt.Fprintln(e.stdout, r.URL)
		return err
	})
	if err != nil {
		return &exitError{status: exitUsage, err: err}
	}
	return nil
}

// allowEnv is the environment variable that stands for --allow where DIR is served, and neither
// --allow nor a configuration is given. An image of a container sets it empty.
const allowEnv = "NFSBOX_ALLOW"

// errNobodyNamed says that the variable is there, and names nobody.
var errNobodyNamed = errors.New("nobody is named who may mount: set " + allowEnv + " to addresses, networks or names, as in " +
	allowEnv + "=10.0.0.0/8,fd00::/8, or to * for everybody who can reach the port; or give --allow or --config")

// allowed takes whom to let in from the environment, if that is where it is said.
func allowed(f *config.Flags, lookup func(string) (string, bool)) error {
	names, ok := lookup(allowEnv)
	if !ok || f.Served() == "" || f.File != "" || f.Given["allow"] {
		return nil
	}
	f.Export.Allow = strings.FieldsFunc(names, func(r rune) bool { return r == ',' || r == ' ' })
	f.Given["allow"] = true
	if len(f.Export.Allow) == 0 {
		return errNobodyNamed
	}
	return nil
}

func printConfig(w io.Writer, c *config.Config) error {
	text, err := c.TOML()
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}
