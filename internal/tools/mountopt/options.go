package mountopt

import (
	"errors"
	"fmt"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/fusefs"
)

// value says whether an option has one.
type value uint8

const (
	valueNone value = iota
	valueSome
	valueMay
)

// option is what an option of nfs(5) does.
type option struct {
	value value
	do    func(p *parser, name, val string) error
}

// ignored are options for mount(8), systemd and others, not for us.
var ignored = [...]string{
	"defaults", "_netdev", "nofail", "fail", "noauto", "auto", "user", "nouser", "users", "owner", "noowner", "group", "nogroup",
	"comment", "sloppy", "helper", "uhelper", "silent", "loud", "mand", "nomand", "nofsc", "iversion", "noiversion",
}

// kernelOptions are those that the kernel has for every file system, by what they speak of: the last counts.
var kernelOptions = map[string]string{
	"ro": "write", "rw": "write", "suid": "suid", "nosuid": "suid", "dev": "dev", "nodev": "dev", "exec": "exec", "noexec": "exec",
	"sync": "sync", "async": "sync", "dirsync": "dirsync", "atime": "atime", "noatime": "atime", "relatime": "atime", "norelatime": "atime",
	"strictatime": "atime", "diratime": "diratime", "nodiratime": "diratime",
}

var kernelOrder = [...]string{"write", "suid", "dev", "exec", "sync", "dirsync", "atime", "diratime"}

// pass gives the URL an argument of the same name.
func pass(p *parser, name, val string) error {
	if val != "" {
		name += "=" + val
	}
	p.arg(name)
	return nil
}

// only takes one of some values, and needs nothing done.
func only(values ...string) func(*parser, string, string) error {
	return func(_ *parser, _, val string) error {
		if !contains(values, val) {
			return fmt.Errorf("value %q; %s is wanted", val, values[0])
		}
		return nil
	}
}

// nothing is an option that asks for what is so already.
func nothing(*parser, string, string) error { return nil }

// noted is an option that is ignored, and why.
func noted(why string) option {
	return option{valueMay, func(p *parser, name, _ string) error {
		p.note("%s is ignored: %s", name, why)
		return nil
	}}
}

// refused is an option that cannot be done without.
func refused(why string) option {
	return option{valueMay, func(*parser, string, string) error { return errors.New(why) }}
}

// options are those of nfs(5), by name.
var options = map[string]option{
	"hard": {valueNone, pass}, "soft": {valueNone, pass}, "softerr": {valueNone, pass},
	"timeo": {valueSome, pass}, "retrans": {valueSome, pass}, "nconnect": {valueSome, pass},
	"rsize": {valueSome, transfer}, "wsize": {valueSome, transfer},
	"resvport": {valueNone, pass}, "noresvport": {valueNone, pass},
	"sec": {valueSome, pass}, "xprtsec": {valueSome, pass}, "mountport": {valueSome, pass},
	"port":    {valueSome, port},
	"vers":    {valueSome, version},
	"nfsvers": {valueSome, version}, "mountvers": {valueSome, only("3")},
	"proto": {valueSome, proto}, "mountproto": {valueSome, only("tcp", "tcp6", "udp", "udp6")},
	"tcp": {valueNone, nothing}, "tcp6": {valueNone, nothing},
	"udp": refused("only TCP is spoken; leave it out"), "rdma": refused("only TCP is spoken; leave it out"),
	"mounthost": refused("MOUNT is asked of the server itself; leave it out"),

	"ac": {valueNone, nothing}, "noac": {valueNone, nothing},
	"acregmin": {valueSome, seconds}, "acregmax": {valueSome, seconds}, "acdirmin": {valueSome, seconds}, "acdirmax": {valueSome, seconds},
	"actimeo":     {valueSome, seconds},
	"lookupcache": {valueSome, lookupCache},
	"cto":         {valueNone, nothing},
	"nocto":       {valueNone, func(p *parser, _, _ string) error { p.m.FS.NoCTO = true; return nil }},
	"acl":         {valueNone, nothing},
	"noacl":       {valueNone, func(p *parser, _, _ string) error { p.m.FS.NoACL = true; return nil }},
	"rdirplus":    {valueMay, listings},
	"nordirplus":  {valueNone, func(p *parser, _, _ string) error { p.m.FS.Plus = fusefs.PlusNever; p.arg("nordirplus"); return nil }},

	"lock":       {valueNone, nothing},
	"nolock":     {valueNone, func(p *parser, _, _ string) error { p.m.FS.LocalPosix, p.m.FS.LocalFlock = true, true; return nil }},
	"local_lock": {valueSome, localLock},

	"allow_other": {valueNone, func(p *parser, _, _ string) error { p.m.FS.AllowOther = true; return nil }},
	"allow_root":  refused("say allow_other; the server judges what each user may do"),

	"fsc": {valueMay, cached}, "cache": {valueSome, cached},

	"bg":    {valueNone, func(p *parser, _, _ string) error { p.m.Background = true; return nil }},
	"fg":    {valueNone, func(p *parser, _, _ string) error { p.m.Background = false; return nil }},
	"retry": {valueSome, retry},

	"intr":             noted("whatever waits for the server can always be killed"),
	"nointr":           noted("whatever waits for the server can always be killed"),
	"sharecache":       {valueNone, nothing},
	"nosharecache":     noted("each mount has its own client and cache"),
	"nosharetransport": noted("each mount has its own connections"),
	"clientaddr":       noted("it is for NFSv4"), "migration": noted("it is for NFSv4"), "nomigration": noted("it is for NFSv4"),
	"minorversion": refused("NFSv4 is not built yet; say vers=3"),
	"namlen":       noted("the server says how long names may be"), "bsize": noted("it has no meaning to NFSv3"),
	"trunkdiscovery": noted("it is for NFSv4"), "notrunkdiscovery": noted("it is for NFSv4"), "max_connect": noted("it is for NFSv4"),
	"alignwrite": noted("writes are gathered before they are sent"), "noalignwrite": noted("writes are gathered before they are sent"),
	"context": {valueSome, toKernel}, "fscontext": {valueSome, toKernel}, "defcontext": {valueSome, toKernel}, "rootcontext": {valueSome, toKernel},
	"default_permissions": refused("the server judges who may do what; leave it out"),
	"remount":             refused("a mount cannot be changed: unmount it, and mount it again"),
	"bind":                refused("use mount --bind"),
}

// transfer takes over rsize and wsize. nfs(5) has small ones, which are raised.
func transfer(p *parser, name, val string) error {
	n, err := parseNumber(val, 1<<32-1)
	if err != nil {
		return err
	}
	if n < minTransfer {
		p.note("%s=%s is raised to %d", name, val, minTransfer)
		val = fmt.Sprint(minTransfer)
	}
	return pass(p, name, val)
}

func port(p *parser, _, val string) error {
	if val == "0" { // nfs(5): ask the portmapper
		return nil
	}
	return pass(p, "nfsport", val)
}

func version(p *parser, _, val string) error {
	switch val {
	case "3":
		return nil
	case "4", "4.0", "4.1", "4.2":
		return errors.New("NFSv4 is not built yet; say vers=3 if the server has it")
	case "2":
		return errors.New("NFSv2 is not spoken; say vers=3")
	}
	return fmt.Errorf("value %q; 3 is wanted", val)
}

func proto(_ *parser, _, val string) error {
	switch val {
	case "tcp", "tcp6":
		return nil
	case "udp", "udp6", "rdma", "rdma6":
		return errors.New("only TCP is spoken; say proto=tcp")
	}
	return fmt.Errorf("value %q; tcp is wanted", val)
}

func seconds(p *parser, name, val string) error {
	n, err := parseNumber(val, maxTime)
	p.times[name] = time.Duration(n) * time.Second
	return err
}

func lookupCache(p *parser, _, val string) error {
	switch val {
	case "all":
		p.m.FS.Entries = fusefs.EntriesAll
	case "pos", "positive":
		p.m.FS.Entries = fusefs.EntriesPositive
	case "none":
		p.m.FS.Entries = fusefs.EntriesNone
	default:
		return fmt.Errorf("value %q; all, positive or none is wanted", val)
	}
	return nil
}

func listings(p *parser, _, val string) error {
	switch val {
	case "":
	case "force":
		p.m.FS.Plus = fusefs.PlusAlways
	case "none":
		p.m.FS.Plus = fusefs.PlusNever
	default:
		return fmt.Errorf("value %q; none or force is wanted", val)
	}
	return nil
}

func localLock(p *parser, _, val string) error {
	switch val {
	case "none":
		p.m.FS.LocalPosix, p.m.FS.LocalFlock = false, false
	case "all":
		p.m.FS.LocalPosix, p.m.FS.LocalFlock = true, true
	case "posix":
		p.m.FS.LocalPosix, p.m.FS.LocalFlock = true, false
	case "flock":
		p.m.FS.LocalPosix, p.m.FS.LocalFlock = false, true
	default:
		return fmt.Errorf("value %q; all, flock, posix or none is wanted", val)
	}
	return nil
}

// cached asks for the disk cache. It is an argument of the URL, which a mount may do without (Uncached).
func cached(p *parser, name, val string) error {
	if name == "fsc" {
		p.m.FSC = true
	}
	return pass(p, name, val)
}

func retry(p *parser, _, val string) error {
	n, err := parseNumber(val, maxRetry)
	p.retry = time.Duration(n) * time.Minute
	return err
}

// toKernel hands an option on, with its value.
func toKernel(p *parser, name, val string) error {
	p.m.FS.Kernel = append(p.m.FS.Kernel, name+"="+val)
	return nil
}
