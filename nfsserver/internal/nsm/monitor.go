package nsm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/nfsserver/internal/callback"
)

const (
	// maxHosts bounds the hosts that are monitored at once, and those that are
	// still to be told of a restart. At the bound [Monitor.Watch] is ErrFull,
	// and the client does not get its lock.
	maxHosts = 8192

	// firstState begins a count that is nowhere on disk; see fresh.
	firstState = 1
)

// ErrFull says that no more hosts can be monitored.
var ErrFull = errors.New("nsm: too many hosts are monitored")

// Host is a client that holds locks.
type Host struct {
	Name  string     // as it calls itself: caller_name
	Addr  netip.Addr // from which it calls; the zero Addr: known by name alone
	Local netip.Addr // of ours, at which it knows us
}

// key identifies a Host.
type key struct {
	name string
	addr netip.Addr
}

func (h *Host) key() key { return key{h.Name, h.Addr} }

// callback is how h is reached.
func (h *Host) callback() callback.Host {
	if !h.Addr.IsValid() {
		return callback.Host{Name: h.Name, Local: h.Local}
	}
	return callback.Host{Name: h.Addr.String(), Local: h.Local}
}

// SameName reports whether a and b can be names of the same host. It ignores case, and the
// domain if one of them has none: hosts use sometimes the long name and sometimes the
// short one.
func SameName(a, b string) bool {
	if strings.EqualFold(a, b) {
		return true
	}
	for _, s := range []string{a, b} {
		if _, err := netip.ParseAddr(s); err == nil {
			return false // an address: its dots separate no domain
		}
	}
	shortA, domainA, _ := strings.Cut(a, ".")
	shortB, domainB, _ := strings.Cut(b, ".")
	return (domainA == "" || domainB == "") && strings.EqualFold(shortA, shortB)
}

// Notice is what a host says of itself when it has restarted.
type Notice struct {
	Name  string
	From  netip.AddrPort // from which the notice came
	User  string         // the user of this host that sent it, as oncrpc.UserOf has it; "": the host
	State int32
}

// Options say how a Monitor works. Call is required.
type Options struct {
	// Dir is the state directory, which must exist; "" keeps nothing, and no
	// client is told of a restart.
	Dir string
	// Hostname is what we call ourselves to clients.
	Hostname string
	Call     *callback.Caller
	Log      *slog.Logger
	// Now dates a state number when there is none on disk; nil is time.Now.
	Now func() time.Time
	// Restarted is called when a host has restarted, before it is answered.
	Restarted func(context.Context, Notice)
	// Crashed is called at SM_SIMU_CRASH, which asks to do what follows a restart of this
	// host.
	Crashed func(context.Context)
}

// Monitor is the status monitor. All methods may be called concurrently.
type Monitor struct {
	o     Options
	store store

	telling chan struct{} // a token for each notice that programs of this host are told

	disk sync.Mutex // held while a host's file is written or removed

	mu       sync.Mutex // guards what follows
	state    uint32
	hosts    map[key]*entry
	keeping  bool // hosts that have been told are kept
	watchers []watcher
	running  bool

	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup // what tells hosts of a restart
}

// entry is what is known of a host. Its file is there while it is watched or
// owed.
type entry struct {
	host    Host
	watched bool // it may hold locks
	owed    bool // it has not yet been told of the restart
	kept    bool // it has been told, and may be about to claim its locks back
}

// New reads the state directory and raises the state number, durably. It makes
// no call before Start.
func New(o Options) (*Monitor, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Monitor{o: o, store: store{o.Dir}, hosts: make(map[key]*entry), telling: make(chan struct{}, maxTelling)}
	hosts, err := m.store.hosts(func(name string, err error) {
		o.Log.Warn("a monitored client is lost: it will not hear of this restart", "file", name, "error", err)
	})
	if err != nil {
		return nil, fmt.Errorf("nsm: %w", err)
	}
	for _, h := range hosts {
		m.hosts[h.key()] = &entry{host: h, owed: true}
	}
	if err := m.raise(); err != nil {
		return nil, fmt.Errorf("nsm: the state number: %w", err)
	}
	m.ctx, m.stop = context.WithCancel(context.Background())
	return m, nil
}

// raise stores the next state number, 2 above the one on disk, so that it stays odd.
func (m *Monitor) raise() error {
	m.disk.Lock()
	defer m.disk.Unlock()
	n, ok, err := m.store.state()
	if errors.Is(err, errDamaged) {
		m.o.Log.Warn("the state number is lost, beginning anew by the clock", "error", err)
		err = nil
	}
	if err != nil {
		return err
	}
	if !ok {
		n = fresh(m.o.Now())
	}
	n = (n + 2) & (1<<31 - 1) // on the wire it has a sign
	m.mu.Lock()
	m.state = n
	m.mu.Unlock()
	return m.store.setState(n)
}

// fresh is the state number if there is none on disk. Clients only compare it with former
// ones, so the clock gives a good start.
func fresh(now time.Time) uint32 { return uint32(now.Unix())<<1 | firstState }

// State is the present state number.
func (m *Monitor) State() int32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int32(m.state)
}

// Owed is how many hosts have yet to be told of the restart.
func (m *Monitor) Owed() int { return m.count(func(e *entry) bool { return e.owed }) }

// Watched is how many hosts are monitored.
func (m *Monitor) Watched() int { return m.count(func(e *entry) bool { return e.watched }) }

func (m *Monitor) count(of func(*entry) bool) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.hosts {
		if of(e) {
			n++
		}
	}
	return n
}

// Watch makes sure that h will be told if this server restarts. When it returns, h is
// recorded on disk.
func (m *Monitor) Watch(h Host) error {
	if m.watched(h.key()) {
		return nil
	}
	m.disk.Lock()
	defer m.disk.Unlock()
	if m.watched(h.key()) {
		return nil
	}
	m.mu.Lock()
	full := len(m.hosts) >= maxHosts && m.hosts[h.key()] == nil
	m.mu.Unlock()
	if full {
		return ErrFull
	}
	if err := m.store.put(&h); err != nil {
		return fmt.Errorf("nsm: remembering %s: %w", h.Name, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	e := cmp.Or(m.hosts[h.key()], &entry{})
	e.host, e.watched = h, true
	m.hosts[h.key()] = e
	return nil
}

func (m *Monitor) watched(k key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.hosts[k]
	return e != nil && e.watched
}

// Unwatch forgets h: it holds no locks any more.
func (m *Monitor) Unwatch(h Host) error {
	return m.forget(h.key(), func(e *entry) { e.watched = false })
}

// forget changes a host's entry, and removes it with its file when nothing is
// left in it.
func (m *Monitor) forget(k key, change func(*entry)) error {
	m.disk.Lock()
	defer m.disk.Unlock()
	m.mu.Lock()
	e := m.hosts[k]
	gone := false
	if e != nil {
		change(e)
		if gone = !e.watched && !e.owed && !e.kept; gone {
			delete(m.hosts, k)
		}
	}
	m.mu.Unlock()
	if !gone {
		return nil
	}
	return m.store.drop(k)
}

// Keep has hosts stay on disk when they have been told of the restart, until Settle. If the server
// crashes again before such a host has its locks back, it has to be told again.
func (m *Monitor) Keep() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keeping = true
}

// Settle ends Keep: what has not come for its locks will not get them any more.
func (m *Monitor) Settle() {
	m.mu.Lock()
	m.keeping = false
	var kept []Host
	for _, e := range m.hosts {
		if e.kept {
			kept = append(kept, e.host)
		}
	}
	m.mu.Unlock()
	for _, h := range kept {
		m.drop(h, func(e *entry) { e.kept = false })
	}
}

// Start begins to tell the clients of before the restart, in the background.
func (m *Monitor) Start() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.running || m.ctx.Err() != nil {
		return
	}
	m.running = true
	m.wg.Go(m.notifyAll)
}

// Close ends all work in the background. The hosts that hold locks stay on disk, and are
// told when the server is back.
func (m *Monitor) Close() {
	m.mu.Lock()
	m.stop()
	m.mu.Unlock()
	m.wg.Wait()
}
