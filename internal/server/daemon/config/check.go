package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path"
	"strings"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/iogate"
)

// check finds all that is wrong with a Config that fill has completed.
func (c *Config) check() problems {
	var p problems
	p.addresses("listen", c.Listen)
	p.addresses("portmap-listen", c.PortmapListen)
	if len(c.Listen) == 0 {
		p.add("listen", "no address")
	}
	p.oneOf("localio", c.LocalIO, LocalIOOn, LocalIOOff, LocalIOTrusted)
	if _, err := iogate.ParseKind(c.IOPool); err != nil {
		p.add("io-pool", "%v", err)
	}
	threads := int64(iogate.DefaultThreads)
	if c.IOThreads != 0 {
		threads = int64(c.IOThreads)
		p.within("io-threads", threads, int64(iogate.MinThreads), iogate.MaxThreads)
	}
	p.within("io-priority-threads", int64(c.IOPriorityThreads), 0, threads)
	p.within("io-queue", int64(c.IOQueue), 0, maxNumber)
	if c.IOPool != "c" && (c.IOPriorityThreads != 0 || c.IOAffinity) {
		p.add("io-pool", "io-priority-threads and io-affinity are for the threads of kind c, and this is %s", c.IOPool)
	}
	p.within("max-connections", int64(c.MaxConnections), 1, maxNumber)
	p.within("max-calls-per-connection", int64(c.MaxCalls), 1, maxNumber)
	p.size("max-request-bytes", c.MaxRequestBytes, 2<<20, maxSize)
	p.size("max-reply-bytes", c.MaxReplyBytes, 2<<20, maxSize)
	p.positive("idle-timeout", c.IdleTimeout)
	p.positive("replies-keep", c.RepliesKeep)
	p.within("max-open-files", int64(c.MaxOpenFiles), MinOpenFiles, maxNumber)
	p.within("replies-per-client", int64(c.RepliesPerClient), 1, maxNumber)
	p.size("replies-bytes", c.RepliesBytes, 1<<20, maxSize)
	if c.Slow != 0 && c.Slow < Duration(SlowFloor) {
		p.add("slow", "%v is below %v", c.Slow, SlowFloor)
	}
	c.Log.check(&p)
	if c.Metrics != "" {
		p.address("metrics", c.Metrics)
	}
	if c.HTTP != "" {
		p.address("http", c.HTTP)
	}
	if c.Pprof != "" {
		p.address("pprof", c.Pprof)
		if !c.PprofPublic && !OnLoopback(c.Pprof) {
			p.add("pprof", "%s is not on loopback, and profiles tell what is in memory; pprof-public allows it", c.Pprof)
		}
	}
	c.API.check(&p)
	p.apart(c)
	c.checkExports(&p)
	return p
}

// Complete fills in what was left out of a Config that Load has not seen, and checks
// it.
func (c *Config) Complete() (err error) {
	c.Fill()
	for _, p := range c.check() {
		err = errors.Join(err, p.at(Flags{}, nil))
	}
	return err
}

func (c *Config) checkExports(p *problems) {
	if len(c.Exports) == 0 {
		p.add("export", "nothing is exported: add an [[export]] with path and dir")
	}
	p.within("export", int64(len(c.Exports)), 0, export.MaxExports)
	paths, ids := make(map[string]int), make(map[uint32]int)
	for i := range c.Exports {
		e, key := &c.Exports[i], fmt.Sprintf("export[%d]", i)
		e.check(key, p)
		if first, ok := paths[e.Path]; ok {
			p.add(key+".path", "%q is the path of export[%d] already", e.Path, first)
		}
		paths[e.Path] = i
		if first, ok := ids[e.FSID]; ok && e.FSID != 0 {
			p.add(key+".fsid", "%d is the number of export[%d] already", e.FSID, first)
		}
		ids[e.FSID] = i
	}
	c.checkProxies(p)
}

func (e *Export) check(key string, p *problems) {
	if !path.IsAbs(e.Path) || path.Clean(e.Path) != e.Path {
		p.add(key+".path", "%q is not absolute and clean, such as / or /home", e.Path)
	}
	if advice := Misplaced(e.Path); advice != "" {
		p.add(key+".path", "%q: %s", e.Path, advice)
	}
	if e.From != "" {
		e.checkFrom(key, p)
	} else {
		e.checkDir(key, p)
	}
	e.Rule.check(key, p)
	p.within(key+".clients", int64(len(e.Clients)+len(e.Allow)), 0, maxRules)
	for i, a := range e.Allow {
		p.match(fmt.Sprintf("%s.allow[%d]", key, i), a)
	}
	for i := range e.Clients {
		at := fmt.Sprintf("%s.clients[%d]", key, i)
		p.match(at+".match", e.Clients[i].Match)
		if e.Clients[i].Squash != e.Squash { // else it has been told, of the export that it is taken over from
			e.Clients[i].Rule.check(at, p)
		}
	}
}

// checkDir is of an export that is a directory of this host.
func (e *Export) checkDir(key string, p *problems) {
	if e.Dir == "" {
		p.add(key+".dir", "no directory")
	} else if advice := Misplaced(e.Dir); advice != "" {
		p.add(key+".dir", "%q is no directory: %s", e.Dir, advice)
	}
	p.oneOf(key+".handles", e.Handles, "auto", "kernel", "map")
	if e.Handles == "kernel" && e.CrossMounts {
		p.add(key+".handles", "handles of the kernel are those of one file system; with crossmnt it takes map or auto")
	}
	p.none(key, "for what another server has (from), and this is a directory", []unfit{
		{"cache", e.Cache != ""}, {"cache-config", e.CacheConfig != ""}, {"offline", e.Offline != 0},
	})
}

func (r *Rule) check(key string, p *problems) {
	if r.Squash != "" {
		p.oneOf(key+".squash", r.Squash, "none", "root", "all")
	}
}

// match refuses a client that package export would not understand.
func (p *problems) match(key, m string) {
	if strings.ContainsRune(m, '/') {
		prefix, err := netip.ParsePrefix(m)
		switch {
		case err != nil:
			p.add(key, "%q is no network, such as 10.0.0.0/8 or 2001:db8::/32", m)
		case prefix.Masked() != prefix:
			p.add(key, "%q has bits beyond its length; the network is %v", m, prefix.Masked())
		}
		return
	}
	if m == "" || strings.ContainsAny(m, " ,()") {
		p.add(key, "%q is no client: write an address, a network (10.0.0.0/8), a host name, *.example.org or *", m)
		return
	}
	if err := export.CheckMatch(m); err != nil {
		p.add(key, "%q: %v", m, err)
	}
}

// apart refuses an address that is named twice. Port 0, which takes a free one, may be.
func (p *problems) apart(c *Config) {
	by := make(map[string]string)
	for _, x := range []struct {
		what, key string
		all       []string
	}{
		{"NFS", "listen", c.Listen}, {"the port mapper", "portmap-listen", c.PortmapListen}, {"metrics", "metrics", []string{c.Metrics}},
		{"http", "http", []string{c.HTTP}}, {"pprof", "pprof", []string{c.Pprof}}, {"the file API", "api.listen", c.API.Listen},
	} {
		for i, a := range x.all {
			key := x.key
			if strings.HasSuffix(key, "listen") { // which are lists
				key = fmt.Sprintf("%s[%d]", x.key, i)
			}
			switch other, taken := by[a]; {
			case a == "" || strings.HasSuffix(a, ":0"):
			case taken:
				p.add(key, "%s is the address of %s already", a, other)
			default:
				by[a] = x.what
			}
		}
	}
}

// OnLoopback reports whether an address to listen at is reached from this host
// alone. What is a name is not known to be.
func OnLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// Elsewhere reports whether other hosts may reach an address.
func Elsewhere(address string) bool { return !OnLoopback(address) }
