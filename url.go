package nfsbox

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// maxURL bounds a URL, in bytes. A longer one is an error.
const maxURL = 16 << 10

// SourcePort says which local ports connections are made from.
type SourcePort uint8

// Servers that export with "secure", their default, accept calls only from reserved ports, which
// only root may use.
const (
	SourcePortAuto     SourcePort = iota // a reserved one if the process may use them, else any
	SourcePortReserved                   // a reserved one, or fail
	SourcePortAny
)

// Patience says what happens to a call that the server does not answer (nfs(5)).
type Patience uint8

// A soft call fails after timeo times retrans+1, with an error that Is syscall.EIO, or
// syscall.ETIMEDOUT with softerr. A hard call goes on until its context ends. A call whose reply
// breaks the RPC protocol in the same way twice fails at once, hard or soft.
const (
	PatienceSoft Patience = iota
	PatienceSoftErr
	PatienceHard
)

// URL is a parsed NFS URL. Arguments that were not given are zero.
type URL struct {
	Host string // a name or an address; IPv6 without its brackets
	Port uint16 // serves NFS and MOUNT alike
	Path string // absolute, unescaped, otherwise as written; "/" if there was none

	Export             string        // export, unescaped
	UID, GID           *uint32       // uid, gid
	NFSPort, MountPort uint16        // nfsport, mountport
	LockPort           uint16        // nlmport
	Version            int           // version
	ReadSize           uint32        // rsize, bytes
	WriteSize          uint32        // wsize, bytes
	DirCount, MaxCount uint32        // readdir-buffer, bytes
	Timeout            time.Duration // timeo
	Retries            *int          // retrans
	Reconnect          *int          // autoreconnect: attempts; -1: no end
	SynCount           int           // tcp-syncnt
	Interface          string        // if
	ReadOnly           bool          // readonly
	SourcePort         SourcePort    // resvport, noresvport
	Patience           Patience      // soft, softerr, hard
	Connections        int           // nconnect
	MaxLoad            int           // max-load; 0: auto
	NoReaddirplus      bool          // nordirplus
	ReadAhead          *uint32       // readahead, bytes
	LocalIO            LocalIO       // localio
	LocalIODir         string        // localio-dir, unescaped
	Cached             bool          // fsc, cache
	CacheMark          string        // fsc, unescaped
	CacheDir           string        // cache, unescaped
	AttrCached         bool          // ac, actimeo, acregmin, acregmax, acdirmin, acdirmax, lookupcache: something is kept
	AttrTimes          AttrTimes     // of what is kept
	LookupCache        LookupCache   // lookupcache
	Debug              int           // debug

	args string // as given
	ac   acArgs // while it is parsed
}

// URLError says what is wrong with a URL.
type URLError struct {
	Arg string // the argument that is wrong; "" if it is another part
	Err error
}

// Error implements error.
func (e *URLError) Error() string {
	if e.Arg == "" {
		return "nfs URL: " + e.Err.Error()
	}
	return "nfs URL: argument " + e.Arg + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *URLError) Unwrap() error { return e.Err }

func badURL(format string, args ...any) error {
	return &URLError{Err: fmt.Errorf(format, args...)}
}

// ParseURL parses an NFS URL in the grammar of libnfs:
//
//	nfs://[user@]<server|ipv4|[ipv6]>[:port]/path[?arg=val[&arg=val]*]
//
// The path is %XX-escaped ('?' must be: %3F). The arguments are those of libnfs:
//
//	uid=N                      the user who asks (default: that of the process)
//	gid=N                      the user's group (default: that of the process); with uid or gid no further groups are
//	                           sent
//	version=3                  of NFS; 4 is not built yet
//	nfsport=N                  where NFS is (default: the URL's port, or what the portmapper says)
//	mountport=N                where MOUNT is (default: the URL's port, or what the portmapper says)
//	rsize=N                    bytes of one READ, from 8192 (default: 1 MiB, or what the server takes)
//	wsize=N                    bytes of one WRITE, from 8192 (default: 1 MiB, or what the server takes)
//	readdir-buffer=N[,N]       bytes of a page of a listing: all, or names and all
//	timeo=N                    tenths of a second until a call is sent again (default: 600)
//	retrans=N                  timeo times N+1 is a soft call's patience: until then it is sent again after each
//	                           time-out and each connection that is lost; 0: never (default: 2)
//	autoreconnect=-1|0|N       attempts in a row to connect again; 0: what is lost stays lost (default and -1: as many
//	                           as the call's patience allows; but by default no more than 3 as long as the server has
//	                           never answered)
//	tcp-syncnt=N               Linux: TCP_SYNCNT of sockets
//	if=NAME                    Linux: the network interface that sockets are bound to
//	readonly                   nothing is changed: what would change something fails
//	debug=N                    more than 0: what is logged at debug level, if there is a logger, is logged as
//	                           information
//	sec=sys                    krb5, krb5i and krb5p are not built yet
//	xprtsec=none               tls and mtls are not built yet
//	dircache=0|1               taken as a hint, and not needed: ac and lookupcache say what is kept
//	auto-traverse-mounts=0|1   both mean 0: where the server does not cross over to an export below another by itself
//	                           (Linux: crossmnt), what it holds is reached by a URL of its own
//
// and further, as in nfs(5) where it has them:
//
//	soft                       calls that are not answered fail after a time, with EIO (the default)
//	softerr                    the same, with ETIMEDOUT
//	hard                       calls that are not answered go on until their program gives them up
//	nconnect=N                 most connections at once, 1 to 16 (default: 4), made when needed
//	max-load=auto|N            calls under way of each class, metadata, reads and writes; auto finds out what is best
//	                           for the server, and goes on doing so (default: auto)
//	nlmport=N                  where the lock manager is, which is asked for at the first lock (default: the URL's port,
//	                           or what the portmapper says)
//	export=PATH                where the export ends, %XX-escaped, a beginning of the path: this is asked of MOUNT, the
//	                           rest is looked up (default: as much of the path as the server mounts)
//	nordirplus                 list by READDIR alone
//	readahead=N                most bytes that are read ahead in an open file; 0: none (default: as many as pay, up to
//	                           32 MiB)
//	localio=auto|off|require|trusted
//	                           whether files are read and written without the network where the server is on this host:
//	                           if it can be done, never, or else fail; trusted is auto for programs that use the files
//	                           past nfsbox, too (default: auto)
//	localio-dir=PATH           where the socket of a server on this host is looked for; %XX-escaped, absolute (default:
//	                           /run/nfsbox and $XDG_RUNTIME_DIR/nfsbox)
//	resvport                   connect from a reserved port (the default of root)
//	noresvport                 connect from any port
//	ac                         keep attributes, names and rights for a while, as the Linux client does: others' changes
//	                           are seen later, but for those of a file that is opened afterwards (default: noac)
//	noac                       keep nothing: every question goes to the server (the default, but of mount)
//	actimeo=N                  ac with one time in seconds for the four that follow; 0: noac
//	acregmin=N                 ac: seconds for which the attributes of a file are kept at first; it doubles as long as
//	                           they do not change (default: 3)
//	acregmax=N                 ac: the most that it doubles to (default: 60)
//	acdirmin=N                 ac: the same of a directory, and of the names in it (default: 30)
//	acdirmax=N                 ac: the most that it doubles to (default: 60)
//	lookupcache=all|positive|none
//	                           which names are kept: those that are there and that are not, or that are there, both
//	                           with ac, or none (default: all if there is ac)
//	fsc=[MARK]                 keep what is read on this host's disk, and read it from there, in later runs too; clients
//	                           with another MARK do not see it
//	cache=DIR                  fsc in this directory; %XX-escaped, absolute (default: the dir of /etc/cachefilesd.conf
//	                           or /var/cache/nfsbox for root, ~/.cache/nfsbox for others)
//
// An argument that is unknown, that is given twice, that has a value which makes
// no sense or that asks for what is not built yet is a [*URLError] that names
// it; in the last case it Is errors.ErrUnsupported.
func ParseURL(raw string) (*URL, error) {
	rest, ok := strings.CutPrefix(raw, "nfs://")
	switch {
	case len(raw) > maxURL:
		return nil, badURL("%d bytes, at most %d allowed", len(raw), maxURL)
	case !ok:
		return nil, badURL("does not begin with nfs://")
	}
	u := new(URL)
	rest, args, _ := strings.Cut(rest, "?")
	server, path := rest, ""
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		server, path = rest[:i], rest[i:]
	}
	if err := u.setServer(server); err != nil {
		return nil, err
	}
	if err := u.setPath(path); err != nil {
		return nil, err
	}
	if err := u.setArgs(args); err != nil {
		return nil, err
	}
	return u, nil
}

// setServer parses [user@]host[:port].
func (u *URL) setServer(s string) error {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		user, _, _ := strings.Cut(s[:i], ":") // a password is not to be seen in a log
		return &URLError{Arg: user + "@", Err: unbuiltError("a user's name is for Kerberos, which is not built yet; say uid= and gid=")}
	}
	host, port := s, ""
	switch {
	case strings.HasPrefix(s, "["):
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return badURL("server %q: no ] behind the address", s)
		}
		host, port = strings.ReplaceAll(s[1:end], "%25", "%"), s[end+1:]
		if a, err := netip.ParseAddr(host); err != nil || !a.Is6() {
			return badURL("server %q: not an IPv6 address in brackets", s)
		}
	case strings.Count(s, ":") > 1:
		return badURL("server %q: an IPv6 address stands in brackets", s)
	default:
		if i := strings.IndexByte(s, ':'); i >= 0 {
			host, port = s[:i], s[i:]
		}
		if i := strings.IndexFunc(host, notHost); i >= 0 {
			return badURL("server %q: %q cannot be in a host name", s, host[i])
		}
	}
	if host == "" {
		return badURL("no server")
	}
	u.Host = host
	if port == "" {
		return nil
	}
	n, err := parsePort(strings.TrimPrefix(port, ":"))
	if err != nil || port[0] != ':' {
		return badURL("server %q: port: %w", s, errPort)
	}
	u.Port = n
	return nil
}

// notHost reports whether r can stand in no name that a resolver would take.
func notHost(r rune) bool {
	return r <= ' ' || r == 0x7f || strings.ContainsRune(`"%<>[\]^{|}#`, r)
}

var errPort = errors.New("a number from 1 to 65535 is wanted")

func parsePort(s string) (uint16, error) {
	n, err := parseUint(s, 1, 65535)
	if err != nil {
		return 0, errPort
	}
	return uint16(n), nil
}

// setPath takes over the path, which begins with a slash if there is one.
func (u *URL) setPath(escaped string) error {
	path, err := url.PathUnescape(escaped)
	switch {
	case err != nil:
		return badURL("path %q: %w", escaped, err)
	case strings.ContainsRune(path, 0):
		return badURL("path %q: a NUL", escaped)
	case len(path) > vfs.MaxPath:
		return badURL("path of %d bytes, at most %d allowed", len(path), vfs.MaxPath)
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == ".." {
			return badURL("path %q: \"..\" is not followed; write the path without", escaped)
		}
	}
	if u.Path = path; path == "" {
		u.Path = "/"
	}
	return nil
}

// String is the URL with its path escaped and its arguments as they were given.
func (u *URL) String() string {
	host := u.Host
	if strings.Contains(host, ":") {
		host = "[" + strings.ReplaceAll(host, "%", "%25") + "]"
	}
	if u.Port != 0 {
		host += ":" + strconv.Itoa(int(u.Port))
	}
	s := "nfs://" + host + (&url.URL{Path: u.Path}).EscapedPath()
	if u.args != "" {
		s += "?" + u.args
	}
	return s
}
