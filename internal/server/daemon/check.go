package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/internal/server/iogate"
)

// problem is a value that will not do, or not beside others.
type problem struct {
	key  string // "io-pool", "export[1].dir"
	text string
}

// at says where the value came from: a flag, a line of the file, or neither.
func (p problem) at(f Flags, lines positions) error {
	name := flagOf(p.key)
	if name == "path" && f.Dir != "" {
		name = "export"
	}
	if f.Given[name] {
		return fmt.Errorf("--%s: %s", name, p.text)
	}
	if line, ok := lines.line(p.key); ok {
		return fmt.Errorf("%s:%d: %s: %s", f.File, line, p.key, p.text)
	}
	if f.File != "" {
		return fmt.Errorf("%s: %s: %s", f.File, p.key, p.text)
	}
	return fmt.Errorf("%s: %s", name, p.text)
}

// flagOf is the flag of a key: "io-pool", "log-level" of log.level, "dir" of
// export[1].dir, and "listen" of listen[0].
func flagOf(key string) string {
	tables, last := "", key
	if i := strings.LastIndexByte(key, '.'); i >= 0 {
		tables, last = key[:i], key[i+1:]
	}
	name, _, _ := strings.Cut(last, "[")
	if tables == "" || strings.HasSuffix(tables, "]") {
		return name
	}
	return tables + "-" + name
}

// problems gathers them.
type problems []problem

func (p *problems) add(key, format string, args ...any) {
	*p = append(*p, problem{key: key, text: fmt.Sprintf(format, args...)})
}

func (p *problems) within(key string, v, low, high int64) {
	if v < low || v > high {
		p.add(key, "%d is not within %d and %d", v, low, high)
	}
}

// size is within for sizes.
func (p *problems) size(key string, v, low, high Size) {
	if v < low || v > high {
		p.add(key, "%v is not within %v and %v", v, low, high)
	}
}

// positive refuses 0, where the rooms below would take it for "as you like".
func (p *problems) positive(key string, d Duration) {
	if d <= 0 {
		p.add(key, "%v is no time to wait", d)
	}
}

func (p *problems) oneOf(key, v string, of ...string) {
	if !slices.Contains(of, v) {
		p.add(key, "%q is not one of %s", v, strings.Join(of, ", "))
	}
}

func (p *problems) addresses(key string, all []string) {
	p.within(key, int64(len(all)), 0, maxListen)
	for i, a := range all {
		p.address(fmt.Sprintf("%s[%d]", key, i), a)
	}
}

// address holds a against the shape HOST:PORT, of which HOST may be empty.
func (p *problems) address(key, a string) {
	_, port, err := net.SplitHostPort(a)
	if err != nil {
		p.add(key, "%q is no address and port, such as 127.0.0.1:2049 or [::]:2049", a)
		return
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		p.add(key, "%q: the port is not within 0 and 65535", a)
	}
}

// apart refuses an address that is taken already, but for those whose port is free
// to be chosen.
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

// check finds all that is wrong with a Config that fill has completed.
func (c *Config) check() problems {
	var p problems
	p.addresses("listen", c.Listen)
	p.addresses("portmap-listen", c.PortmapListen)
	if len(c.Listen) == 0 {
		p.add("listen", "no address")
	}
	p.oneOf("localio", c.LocalIO, localIOOn, localIOOff, localIOTrusted)
	if _, err := iogate.ParseKind(c.IOPool); err != nil {
		p.oneOf("io-pool", c.IOPool, "auto", "none", "go", "c", "uring")
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
	p.within("max-open-files", int64(c.MaxOpenFiles), minOpenFiles, maxNumber)
	p.within("replies-per-client", int64(c.RepliesPerClient), 1, maxNumber)
	p.size("replies-bytes", c.RepliesBytes, 1<<20, maxSize)
	if c.Slow != 0 && c.Slow < Duration(slowFloor) {
		p.add("slow", "%v is below %v", c.Slow, slowFloor)
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
		if !c.PprofPublic && !onLoopback(c.Pprof) {
			p.add("pprof", "%s is not on loopback, and profiles tell what is in memory; pprof-public allows it", c.Pprof)
		}
	}
	c.API.check(&p)
	p.apart(c)
	c.checkExports(&p)
	return p
}

// complete fills in what was left out of a Config that Load has not seen, and checks
// it.
func (c *Config) complete() (err error) {
	c.fill()
	for _, p := range c.check() {
		err = errors.Join(err, p.at(Flags{}, nil))
	}
	return err
}

// checkExports looks at each export, and at all of them side by side.
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
}

func (e *Export) check(key string, p *problems) {
	if !path.IsAbs(e.Path) || path.Clean(e.Path) != e.Path {
		p.add(key+".path", "%q is not absolute and clean, such as / or /home", e.Path)
	}
	if e.Dir == "" {
		p.add(key+".dir", "no directory")
	}
	p.oneOf(key+".handles", e.Handles, "auto", "kernel", "map")
	if e.Handles == "kernel" && e.CrossMounts {
		p.add(key+".handles", "handles of the kernel are those of one file system; with crossmnt it takes map or auto")
	}
	e.Rule.check(key, p)
	p.within(key+".clients", int64(len(e.Clients)+len(e.Allow)), 0, maxRules)
	for i, a := range e.Allow {
		p.match(fmt.Sprintf("%s.allow[%d]", key, i), a)
	}
	for i := range e.Clients {
		at := fmt.Sprintf("%s.clients[%d]", key, i)
		p.match(at+".match", e.Clients[i].Match)
		e.Clients[i].Rule.check(at, p)
	}
}

func (r *Rule) check(key string, p *problems) {
	if r.Squash != "" {
		p.oneOf(key+".squash", r.Squash, "none", "root", "all")
	}
}

// match holds the client of a rule against what package export understands.
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
	}
}

// onLoopback reports whether an address to listen at is reached from this host
// alone. What is a name is not known to be.
func onLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// elsewhere reports whether other hosts may reach an address.
func elsewhere(address string) bool { return !onLoopback(address) }

// fill completes what was left out and follows from the rest, but for Squash, which
// follows from who can reach the server.
func (c *Config) fill() {
	for i := range c.Exports {
		e := &c.Exports[i]
		if e.Path == "" {
			e.Path = "/"
		}
		if e.Handles == "" {
			e.Handles = "auto"
		}
		if e.Dir != "" {
			e.Dir = filepath.Clean(e.Dir)
		}
		for j := range e.Clients {
			e.Clients[j].Rule.fill(&e.Rule)
		}
	}
}

// squash says whom to squash where nobody has: root, unless only this host can
// reach the server, and its users are known. That is told by the sockets and not by
// Listen: those of a service manager may be others, and a reload keeps them.
func (c *Config) squash(known bool) {
	whom := "root"
	if known {
		whom = "none"
	}
	for i := range c.Exports {
		e := &c.Exports[i]
		e.Squash = cmp.Or(e.Squash, whom)
		for j := range e.Clients {
			e.Clients[j].Squash = cmp.Or(e.Clients[j].Squash, e.Squash)
		}
	}
}

// fill takes from the export's rule what a client's does not say.
func (r *Rule) fill(of *Rule) {
	r.Squash = cmp.Or(r.Squash, of.Squash)
	for _, x := range []struct{ to, from **bool }{
		{&r.ReadOnly, &of.ReadOnly}, {&r.Secure, &of.Secure}, {&r.ManageGroups, &of.ManageGroups},
		{&r.TrustLocal, &of.TrustLocal},
	} {
		if *x.to == nil {
			*x.to = *x.from
		}
	}
	if r.AnonUID == nil {
		r.AnonUID = of.AnonUID
	}
	if r.AnonGID == nil {
		r.AnonGID = of.AnonGID
	}
}
