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

// arg is an argument of a URL: how to take over its value.
type arg struct {
	name string
	flag bool // may stand without a value, which is then ""
	set  func(u *URL, val string) error
}

// args are all arguments that mean something.
var args = [...]arg{
	// Of libnfs.
	{"tcp-syncnt", false, func(u *URL, v string) error { return setInt(&u.SynCount, v, 1, maxSynCount) }},
	{"uid", false, func(u *URL, v string) error { return setID(&u.UID, v) }},
	{"gid", false, func(u *URL, v string) error { return setID(&u.GID, v) }},
	{"debug", false, func(u *URL, v string) error { return setInt(&u.Debug, v, 0, math.MaxInt32) }},
	{"timeo", false, setTimeo},
	{"retrans", false, func(u *URL, v string) error { return setInt(ptr(&u.Retries), v, 0, maxRetrans) }},
	{"sec", false, only("sys", "say sec=sys if the server takes it", "krb5", "krb5i", "krb5p")},
	{"xprtsec", false, only("none", "use a tunnel if the network is not to be trusted", "tls", "mtls")},
	{"auto-traverse-mounts", false, zeroOrOne},
	{"dircache", false, zeroOrOne},
	{"readonly", true, setReadOnly},
	{"autoreconnect", false, setReconnect},
	{"if", false, setInterface},
	{"version", false, setVersion},
	{"nfsport", false, func(u *URL, v string) (err error) { u.NFSPort, err = parsePort(v); return err }},
	{"mountport", false, func(u *URL, v string) (err error) { u.MountPort, err = parsePort(v); return err }},
	{"rsize", false, func(u *URL, v string) error { return setUint32(&u.ReadSize, v, minTransfer) }},
	{"wsize", false, func(u *URL, v string) error { return setUint32(&u.WriteSize, v, minTransfer) }},
	{"readdir-buffer", false, setReaddirBuffer},
	// Ours.
	{"resvport", true, func(u *URL, v string) error { u.SourcePort = SourcePortReserved; return noValue(v) }},
	{"noresvport", true, func(u *URL, v string) error { u.SourcePort = SourcePortAny; return noValue(v) }},
	{"soft", true, patience(PatienceSoft)},
	{"softerr", true, patience(PatienceSoftErr)},
	{"hard", true, patience(PatienceHard)},
	{"noac", true, func(_ *URL, v string) error { return noValue(v) }},
	{"export", false, setExport},
	{"nconnect", false, func(u *URL, v string) error { return setInt(&u.Connections, v, 1, oncrpc.MaxConns) }},
	{"max-load", false, setMaxLoad},
	{"nordirplus", true, func(u *URL, v string) error { u.NoReaddirplus = true; return noValue(v) }},
	{"readahead", false, func(u *URL, v string) error { return setUint32(ptr(&u.ReadAhead), v, 0) }},
	{"localio", false, setLocalIO},
	{"localio-dir", false, setLocalIODir},
	// Reserved for what is to come.
	{"cache", true, unbuilt("leave it out; nothing is cached")},
	{"fsc", true, unbuilt("leave it out; nothing is cached")},
	{"actimeo", false, unbuilt("leave it out; attributes are not cached")},
	{"lookupcache", false, unbuilt("leave it out; names are not cached")},
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
	return conflict(seen)
}

// conflict is an error if arguments were given that contradict each other.
func conflict(seen map[string]bool) error {
	for _, group := range [...][]string{{"soft", "softerr", "hard"}, {"resvport", "noresvport"}} {
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
		if a.name != name {
			continue
		}
		if !has && !a.flag {
			return fmt.Errorf("a value is missing; write %s=VALUE", name)
		}
		return a.set(u, val)
	}
	return errors.New("unknown; see the documentation of ParseURL for those that there are")
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

func unbuilt(advice string) func(*URL, string) error {
	return func(*URL, string) error { return unbuiltError("not built yet; " + advice) }
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
