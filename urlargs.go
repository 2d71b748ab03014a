package nfsbox

import (
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/near"
	"github.com/nfsbox/nfsbox/oncrpc"
)

const (
	// minTransfer is the least that rsize and wsize may be, as in libnfs.
	minTransfer = 8 << 10
	// maxTimeo and maxRetrans bound patience: an hour a try, a thousand tries.
	maxTimeo   = 36000
	maxRetrans = 1000
	// maxSynCount and maxInterface are what Linux takes (MAX_TCP_SYNCNT,
	// IFNAMSIZ).
	maxSynCount  = 127
	maxInterface = 15
	// maxLoad bounds max-load: one connection has no more calls under way.
	maxLoad = 512
)

// URLArg is an argument of a URL, for programs that explain them.
type URLArg struct {
	Name  string // "uid"
	Value string // what stands behind the equals sign: "N", "auto|N"; in brackets if it may be left out; "" if nothing has to
	Help  string // a phrase without a full stop
}

// URLArgs are the arguments that [ParseURL] takes, as its comment has them.
func URLArgs() []URLArg {
	var list []URLArg
	for i := range args {
		if args[i].Help != "" {
			list = append(list, args[i].URLArg)
		}
	}
	return list
}

// arg is an argument of a URL: how to take over its value. One without Help is not built yet.
type arg struct {
	URLArg
	set func(u *URL, val string) error
}

// args are all arguments that mean something: first libnfs's, then ours, as in nfs(5) where it has them.
var args = [...]arg{
	{URLArg{"uid", "N", "the user who asks (default: that of the process)"}, func(u *URL, v string) error { return setID(&u.UID, v) }},
	{URLArg{"gid", "N", "the user's group (default: that of the process); with uid or gid no further groups are sent"}, func(u *URL, v string) error { return setID(&u.GID, v) }},
	{URLArg{"version", "3", "of NFS; 4 is not built yet"}, setVersion},
	{URLArg{"nfsport", "N", "where NFS is (default: the URL's port, or what the portmapper says)"}, func(u *URL, v string) (err error) { u.NFSPort, err = parsePort(v); return err }},
	{URLArg{"mountport", "N", "where MOUNT is (default: the URL's port, or what the portmapper says)"}, func(u *URL, v string) (err error) { u.MountPort, err = parsePort(v); return err }},
	{URLArg{"rsize", "N", "bytes of one READ, from 8192 (default: 1 MiB, or what the server takes)"}, func(u *URL, v string) error { return setUint32(&u.ReadSize, v, minTransfer) }},
	{URLArg{"wsize", "N", "bytes of one WRITE, from 8192 (default: 1 MiB, or what the server takes)"}, func(u *URL, v string) error { return setUint32(&u.WriteSize, v, minTransfer) }},
	{URLArg{"readdir-buffer", "N[,N]", "bytes of a page of a listing: all, or names and all"}, setReaddirBuffer},
	{URLArg{"timeo", "N", "tenths of a second until a call is sent again (default: 600)"}, setTimeo},
	{URLArg{"retrans", "N", "timeo times N+1 is a soft call's patience: until then it is sent again after each time-out and each connection that is lost; 0: never (default: 2)"}, func(u *URL, v string) error { return setInt(ptr(&u.Retries), v, 0, maxRetrans) }},
	{URLArg{"autoreconnect", "-1|0|N", "attempts in a row to connect again; 0: what is lost stays lost (default and -1: as many as the call's patience allows; but by default no more than 3 as long as the server has never answered)"}, setReconnect},
	{URLArg{"tcp-syncnt", "N", "Linux: TCP_SYNCNT of sockets"}, func(u *URL, v string) error { return setInt(&u.SynCount, v, 1, maxSynCount) }},
	{URLArg{"if", "NAME", "Linux: the network interface that sockets are bound to"}, setInterface},
	{URLArg{"readonly", "", "nothing is changed: what would change something fails"}, setReadOnly},
	{URLArg{"debug", "N", "more than 0: what is logged at debug level, if there is a logger, is logged as information"}, func(u *URL, v string) error { return setInt(&u.Debug, v, 0, math.MaxInt32) }},
	{URLArg{"sec", "sys", "krb5, krb5i and krb5p are not built yet"}, only("sys", "say sec=sys if the server takes it", "krb5", "krb5i", "krb5p")},
	{URLArg{"xprtsec", "none", "tls and mtls are not built yet"}, only("none", "use a tunnel if the network is not to be trusted", "tls", "mtls")},
	{URLArg{"dircache", "0|1", "taken as a hint, and not needed: ac and lookupcache say what is kept"}, zeroOrOne},
	{URLArg{"auto-traverse-mounts", "0|1", "both mean 0: where the server does not cross over to an export below another by itself (Linux: crossmnt), what it holds is reached by a URL of its own"}, zeroOrOne},
	// Ours.
	{URLArg{"soft", "", "calls that are not answered fail after a time, with EIO (the default)"}, patience(PatienceSoft)},
	{URLArg{"softerr", "", "the same, with ETIMEDOUT"}, patience(PatienceSoftErr)},
	{URLArg{"hard", "", "calls that are not answered go on until their program gives them up"}, patience(PatienceHard)},
	{URLArg{"nconnect", "N", "most connections at once, 1 to 16 (default: 4), made when needed"}, func(u *URL, v string) error { return setInt(&u.Connections, v, 1, oncrpc.MaxConns) }},
	{URLArg{"max-load", "auto|N", "calls under way of each class, metadata, reads and writes; auto finds out what is best for the server, and goes on doing so (default: auto)"}, setMaxLoad},
	{URLArg{"nlmport", "N", "where the lock manager is, which is asked for at the first lock (default: the URL's port, or what the portmapper says)"}, func(u *URL, v string) (err error) { u.LockPort, err = parsePort(v); return err }},
	{URLArg{"export", "PATH", "where the export ends, %XX-escaped, a beginning of the path: this is asked of MOUNT, the rest is looked up (default: as much of the path as the server mounts)"}, setExport},
	{URLArg{"nordirplus", "", "list by READDIR alone"}, func(u *URL, v string) error { u.NoReaddirplus = true; return noValue(v) }},
	{URLArg{"readahead", "N", "most bytes that are read ahead in an open file; 0: none (default: as many as pay, up to 32 MiB)"}, func(u *URL, v string) error { return setUint32(ptr(&u.ReadAhead), v, 0) }},
	{URLArg{"localio", "auto|off|require|trusted", "whether files are read and written without the network where the server is on this host: if it can be done, never, or else fail; trusted is auto for programs that use the files past nfsbox, too (default: auto)"}, setLocalIO},
	{URLArg{"localio-dir", "PATH", "where the socket of a server on this host is looked for; %XX-escaped, absolute (default: /run/nfsbox and $XDG_RUNTIME_DIR/nfsbox)"}, setLocalIODir},
	{URLArg{"resvport", "", "connect from a reserved port (the default of root)"}, func(u *URL, v string) error { u.SourcePort = SourcePortReserved; return noValue(v) }},
	{URLArg{"noresvport", "", "connect from any port"}, func(u *URL, v string) error { u.SourcePort = SourcePortAny; return noValue(v) }},
	{URLArg{"ac", "", "keep attributes, names and rights for a while, as the Linux client does: others' changes are seen later, but for those of a file that is opened afterwards (default: noac)"}, setAC},
	{URLArg{"noac", "", "keep nothing: every question goes to the server (the default, but of mount)"}, setNoAC},
	{URLArg{"actimeo", "N", "ac with one time in seconds for the four that follow; 0: noac"}, acTime(func(a *acArgs) **time.Duration { return &a.all })},
	{URLArg{"acregmin", "N", "ac: seconds for which the attributes of a file are kept at first; it doubles as long as they do not change (default: 3)"}, acTime(func(a *acArgs) **time.Duration { return &a.fileMin })},
	{URLArg{"acregmax", "N", "ac: the most that it doubles to (default: 60)"}, acTime(func(a *acArgs) **time.Duration { return &a.fileMax })},
	{URLArg{"acdirmin", "N", "ac: the same of a directory, and of the names in it (default: 30)"}, acTime(func(a *acArgs) **time.Duration { return &a.dirMin })},
	{URLArg{"acdirmax", "N", "ac: the most that it doubles to (default: 60)"}, acTime(func(a *acArgs) **time.Duration { return &a.dirMax })},
	{URLArg{"lookupcache", "all|positive|none", "which names are kept: those that are there and that are not, or that are there, both with ac, or none (default: all if there is ac)"}, setLookupCache},
	{URLArg{"fsc", "[MARK]", "keep what is read on this host's disk, and read it from there, in later runs too; clients with another MARK do not see it"}, setFSC},
	{URLArg{"cache", "DIR", "fsc in this directory; %XX-escaped, absolute (default: the dir of /etc/cachefilesd.conf or /var/cache/nfsbox for root, ~/.cache/nfsbox for others)"}, setCacheDir},
}

// setArgs takes over what stands behind the question mark.
func (u *URL) setArgs(s string) error {
	u.args = s
	seen := make(map[string]bool)
	for one := range strings.SplitSeq(s, "&") {
		if one == "" {
			continue
		}
		name, val, has := strings.Cut(one, "=")
		if seen[name] {
			return &URLError{Arg: name, Err: errors.New("given twice")}
		}
		seen[name] = true
		if err := u.setArg(name, val, has); err != nil {
			return &URLError{Arg: name, Err: err}
		}
	}
	if err := conflict(seen); err != nil {
		return err
	}
	err := u.setAttrTimes()
	u.ac = acArgs{}
	return err
}

// conflict is an error if arguments were given that contradict each other.
func conflict(seen map[string]bool) error {
	for _, group := range [...][]string{{"soft", "softerr", "hard"}, {"resvport", "noresvport"},
		{"noac", "ac"}, {"noac", "actimeo"}, {"noac", "acregmin"}, {"noac", "acregmax"}, {"noac", "acdirmin"}, {"noac", "acdirmax"}} {
		first := ""
		for _, name := range group {
			switch {
			case !seen[name]:
			case first == "":
				first = name
			default:
				return &URLError{Arg: name, Err: fmt.Errorf("contradicts %s", first)}
			}
		}
	}
	return nil
}

func (u *URL) setArg(name, val string, has bool) error {
	for i := range args {
		a := &args[i]
		if a.Name != name {
			continue
		}
		if !has && a.Value != "" && a.Value[0] != '[' {
			return fmt.Errorf("a value is missing; write %s=VALUE", name)
		}
		return a.set(u, val)
	}
	proposal := ""
	names := func(yield func(string) bool) {
		for i := range args {
			if args[i].Help != "" && !yield(args[i].Name) {
				return
			}
		}
	}
	if meant := near.Of(name, names); meant != "" {
		proposal = "; did you mean " + meant + "?"
	}
	return errors.New("unknown" + proposal + "; nfsbox help urls has those that there are")
}

// patience makes the flags of what becomes of calls that are not answered.
func patience(p Patience) func(*URL, string) error {
	return func(u *URL, v string) error {
		u.Patience = p
		return noValue(v)
	}
}

// zeroOrOne takes what needs nothing done either way.
func zeroOrOne(_ *URL, v string) error {
	_, err := parseUint(v, 0, 1)
	return err
}

func setMaxLoad(u *URL, v string) error {
	if v == "auto" {
		u.MaxLoad = 0
		return nil
	}
	if err := setInt(&u.MaxLoad, v, 1, maxLoad); err != nil {
		return badValue(v, fmt.Sprintf("auto or a number from 1 to %d", maxLoad))
	}
	return nil
}

// only takes one value, which asks for nothing. Those in known are not built yet, and advice
// says what to do instead.
func only(value, advice string, known ...string) func(*URL, string) error {
	return func(_ *URL, v string) error {
		switch {
		case v == value:
			return nil
		case slices.Contains(known, v):
			return unbuiltError(fmt.Sprintf("%q is not built yet; %s", v, advice))
		}
		return badValue(v, value)
	}
}

// unbuiltError says what is not built yet. It Is errors.ErrUnsupported.
type unbuiltError string

func (e unbuiltError) Error() string        { return string(e) }
func (e unbuiltError) Is(target error) bool { return target == errors.ErrUnsupported }

func badValue(v, want string) error { return fmt.Errorf("value %q; %s is wanted", v, want) }

func noValue(v string) error {
	if v != "" {
		return badValue(v, "none")
	}
	return nil
}

// parseUint parses digits, and nothing but digits.
func parseUint(s string, least, most uint64) (uint64, error) {
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil || n < least || n > most {
		return 0, badValue(s, fmt.Sprintf("a number from %d to %d", least, most))
	}
	return n, nil
}

func setInt(to *int, v string, least, most uint64) error {
	n, err := parseUint(v, least, most)
	*to = int(n)
	return err
}

func setUint32(to *uint32, v string, least uint64) error {
	n, err := parseUint(v, least, math.MaxUint32)
	*to = uint32(n)
	return err
}

func setID(to **uint32, v string) error { return setUint32(ptr(to), v, 0) }

// ptr makes a place for the value of an argument of which it matters whether it
// was given.
func ptr[T any](to **T) *T {
	*to = new(T)
	return *to
}

// setExport takes over where the export ends, which has to be in the path.
func setExport(u *URL, v string) error {
	path, err := url.PathUnescape(v)
	if err != nil {
		return fmt.Errorf("value %q: %w", v, err)
	}
	inside := strings.HasPrefix(u.Path+"/", strings.TrimSuffix(path, "/")+"/")
	if !strings.HasPrefix(path, "/") || !inside {
		return badValue(v, "a beginning of the URL's path")
	}
	u.Export = path
	return nil
}

func setTimeo(u *URL, v string) error {
	n, err := parseUint(v, 1, maxTimeo)
	u.Timeout = time.Duration(n) * (time.Second / 10)
	return err
}

func setReadOnly(u *URL, v string) error {
	switch v {
	case "", "1":
		u.ReadOnly = true
	case "0":
	default:
		return badValue(v, "none, 0 or 1")
	}
	return nil
}

func setReconnect(u *URL, v string) error {
	if v == "-1" {
		*ptr(&u.Reconnect) = -1
		return nil
	}
	return setInt(ptr(&u.Reconnect), v, 0, maxRetrans)
}

func setInterface(u *URL, v string) error {
	if v == "" || len(v) > maxInterface || strings.ContainsAny(v, "/ \t\n") {
		return badValue(v, "the name of a network interface")
	}
	u.Interface = v
	return nil
}

func setVersion(u *URL, v string) error {
	switch v {
	case "3":
		u.Version = 3
		return nil
	case "4", "4.0", "4.1", "4.2":
		return unbuiltError("NFS version " + v + " is not built yet; say version=3 if the server has it")
	}
	return badValue(v, "3")
}

func setReaddirBuffer(u *URL, v string) error {
	names, all, two := strings.Cut(v, ",")
	if !two {
		all = names
	}
	if err := setUint32(&u.DirCount, names, 1); err != nil {
		return err
	}
	return setUint32(&u.MaxCount, all, 1)
}
