package nsm

import (
	"context"
	"net/netip"
	"slices"

	"github.com/nfsbox/nfsbox/nfsserver/internal/callback"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nsm"
	"github.com/nfsbox/nfsbox/xdr"
)

const (
	// maxWatchers bounds what programs of this host have asked for with SM_MON.
	// At the bound they are told stat_fail.
	maxWatchers = 1024

	// maxTelling bounds the notices that such programs are being told of at once. At the
	// bound a notice gets no reply, so that its host sends it again.
	maxTelling = 16

	// unknown is the state in a result that failed.
	unknown = -1

	// loopback is where programs of this host are called back.
	loopback = "127.0.0.1"
)

// watcher is a program of this host that wants to know when a host restarts. Watchers are
// kept in memory only: a program has to ask again after our restart.
type watcher struct {
	host             string
	me               string
	prog, vers, proc uint32
	priv             [16]byte
}

// RPC binds the procedures to their numbers.
func (m *Monitor) RPC() oncrpc.Service {
	h := make([]oncrpc.Handler, len(nsm.SM_VERS.Procs))
	h[nsm.SM_STAT.Number] = m.stat
	h[nsm.SM_MON.Number] = m.mon
	h[nsm.SM_UNMON.Number] = m.unmon
	h[nsm.SM_UNMON_ALL.Number] = m.unmonAll
	h[nsm.SM_SIMU_CRASH.Number] = m.simuCrash
	h[nsm.SM_NOTIFY.Number] = m.notified
	return oncrpc.Service{Program: &nsm.SM_VERS, Handlers: h}
}

func args(c *oncrpc.Call, a xdr.Unmarshaler) error {
	if err := a.DecodeXDR(&c.Args); err != nil {
		return err
	}
	return c.Args.Finish()
}

// privileged reports whether the call comes from a program of root on this host: from a
// loopback address and a reserved port. Some hosts give every user reserved ports, so if
// the user is known, it must be root.
func privileged(c *oncrpc.Call) bool {
	from := callback.From(c.Remote)
	if of, ok := c.Remote.(*oncrpc.UserAddr); ok && of.UID != oncrpc.UnknownUser {
		return false
	}
	return from.Addr().IsLoopback() && from.Port() < 1024
}

// stat is procedure 1: whether a host could be monitored, and our own state.
func (m *Monitor) stat(_ context.Context, c *oncrpc.Call) error {
	var a nsm.SmName
	if err := args(c, &a); err != nil {
		return err
	}
	res := nsm.SmStatRes{ResStat: nsm.StatFail, State: unknown}
	if privileged(c) && len(a.MonName) > 0 {
		res = nsm.SmStatRes{ResStat: nsm.StatSucc, State: m.State()}
	}
	return c.Reply(&res)
}

// mon is procedure 2: a program of this host wants to be told when a host restarts.
func (m *Monitor) mon(_ context.Context, c *oncrpc.Call) error {
	var a nsm.Mon
	if err := args(c, &a); err != nil {
		return err
	}
	res := nsm.SmStatRes{ResStat: nsm.StatFail, State: unknown}
	if privileged(c) && m.add(newWatcher(&a.MonId, a.Priv)) {
		res = nsm.SmStatRes{ResStat: nsm.StatSucc, State: m.State()}
	}
	return c.Reply(&res)
}

func newWatcher(id *nsm.MonId, priv [16]byte) watcher {
	return watcher{host: string(id.MonName), me: string(id.MyId.MyName), priv: priv,
		prog: uint32(id.MyId.MyProg), vers: uint32(id.MyId.MyVers), proc: uint32(id.MyId.MyProc)}
}

// same reports whether the two are one, up to priv.
func (w watcher) same(o watcher) bool {
	w.priv, o.priv = [16]byte{}, [16]byte{}
	return w == o
}

// add remembers w, and that its host is to be told if we restart.
func (m *Monitor) add(w watcher) bool {
	if w.host == "" {
		return false
	}
	m.mu.Lock()
	i := slices.IndexFunc(m.watchers, w.same)
	full := i < 0 && len(m.watchers) >= maxWatchers
	switch {
	case full:
	case i >= 0:
		m.watchers[i] = w
	default:
		m.watchers = append(m.watchers, w)
	}
	m.mu.Unlock()
	if full {
		return false
	}
	if err := m.Watch(hostNamed(w.host)); err != nil {
		m.o.Log.Warn("a program asked to monitor a host", "host", w.host, "error", err)
		m.remove(w.same)
		return false
	}
	return true
}

// hostNamed is a host of which only a name is known, which may be an address.
func hostNamed(name string) Host {
	if addr, err := netip.ParseAddr(name); err == nil {
		return Host{Name: name, Addr: addr.Unmap()}
	}
	return Host{Name: name}
}

// remove forgets watchers, and hosts for which there is none left.
func (m *Monitor) remove(which func(watcher) bool) {
	m.mu.Lock()
	var gone []string
	m.watchers = slices.DeleteFunc(m.watchers, func(w watcher) bool {
		if which(w) {
			gone = append(gone, w.host)
			return true
		}
		return false
	})
	gone = slices.DeleteFunc(gone, func(host string) bool {
		return slices.ContainsFunc(m.watchers, func(w watcher) bool { return w.host == host })
	})
	m.mu.Unlock()
	for _, host := range gone {
		if err := m.Unwatch(hostNamed(host)); err != nil {
			m.o.Log.Warn("a host stays in the list of those to be told", "host", host, "error", err)
		}
	}
}

// unmon is procedure 3.
func (m *Monitor) unmon(_ context.Context, c *oncrpc.Call) error {
	var a nsm.MonId
	if err := args(c, &a); err != nil {
		return err
	}
	if privileged(c) {
		m.remove(newWatcher(&a, [16]byte{}).same)
	}
	return c.Reply(&nsm.SmStat{State: m.State()})
}

// unmonAll is procedure 4: a program of this host ends.
func (m *Monitor) unmonAll(_ context.Context, c *oncrpc.Call) error {
	var a nsm.MyId
	if err := args(c, &a); err != nil {
		return err
	}
	if privileged(c) {
		me := newWatcher(&nsm.MonId{MyId: a}, [16]byte{})
		m.remove(func(w watcher) bool { me.host = w.host; return w.same(me) })
	}
	return c.Reply(&nsm.SmStat{State: m.State()})
}

// simuCrash is procedure 5: do what follows a restart, without one.
func (m *Monitor) simuCrash(ctx context.Context, c *oncrpc.Call) error {
	if err := c.Args.Finish(); err != nil {
		return err
	}
	if !privileged(c) {
		return c.Reply(xdr.Void{})
	}
	if err := m.raise(); err != nil {
		return err
	}
	m.mu.Lock()
	for _, e := range m.hosts {
		e.owed = e.owed || e.watched
	}
	m.mu.Unlock()
	if m.o.Crashed != nil {
		m.o.Crashed(ctx)
	}
	m.Start()
	return c.Reply(xdr.Void{})
}

// notified is procedure 6: a host says that it has restarted. Any host may.
func (m *Monitor) notified(ctx context.Context, c *oncrpc.Call) error {
	var a nsm.StatChge
	if err := args(c, &a); err != nil {
		return err
	}
	n := Notice{Name: string(a.MonName), From: callback.From(c.Remote), User: oncrpc.UserOf(c.Remote), State: a.State}
	m.o.Log.Debug("a host says that it has restarted", "host", n.Name, "address", n.From, "state", n.State)
	if m.o.Restarted != nil {
		m.o.Restarted(ctx, n)
	}
	concerned := m.concerned(n)
	if len(concerned) > 0 {
		select {
		case m.telling <- struct{}{}:
			defer func() { <-m.telling }()
		default:
			return oncrpc.ErrDrop
		}
	}
	for _, w := range concerned {
		status := &nsm.Status{MonName: []byte(w.host), State: n.State, Priv: w.priv}
		proc := &xdr.Proc{Name: "SM_MON's", Program: w.prog, Version: w.vers, Number: w.proc, Repeatable: true}
		host := callback.Host{Name: loopback, Network: "udp"}
		if err := m.o.Call.Call(ctx, host, proc, status, &xdr.Void{}); err != nil {
			m.o.Log.Warn("a program did not want to hear what it has asked for", "host", w.host, "error", err)
		}
	}
	return c.Reply(xdr.Void{})
}

// concerned are the watchers of the host that a notice is about.
func (m *Monitor) concerned(n Notice) (all []watcher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.watchers {
		if SameName(w.host, n.Name) || w.host == n.From.Addr().String() {
			all = append(all, w)
		}
	}
	return all
}
