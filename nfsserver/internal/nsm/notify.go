package nsm

import (
	"context"
	"sync"
	"time"

	"github.com/nfsbox/nfsbox/proto/nsm"
	"github.com/nfsbox/nfsbox/xdr"
)

const (
	// notifyFor is how long a host that does not answer is told of the restart, as by
	// sm-notify(8). Then it is forgotten: most likely it is down, and has no locks.
	notifyFor = 15 * time.Minute

	// Between two rounds there is a backoff.
	notifyPause    = 5 * time.Second
	maxNotifyPause = time.Minute

	// notifyWorkers is how many hosts are told at once. A dead host holds one of
	// them up for notifyTimeout.
	notifyWorkers = 64
	notifyTimeout = 10 * time.Second
)

// notifyAll tells every host that has to be told, until all have answered or notifyFor is
// over. At most one notifyAll runs.
func (m *Monitor) notifyAll() {
	ctx, cancel := context.WithTimeout(m.ctx, notifyFor)
	defer cancel()
	for pause := notifyPause; ctx.Err() == nil; pause = min(2*pause, maxNotifyPause) {
		if m.done() {
			return
		}
		m.round(ctx, m.owing())
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
	if m.ctx.Err() != nil {
		return // the hosts are still on disk, and are told after the next start
	}
	for _, h := range m.owing() {
		m.o.Log.Warn("a client did not answer when it was told that the server has restarted; its locks are lost to it",
			"client", h.Name, "address", h.Addr, "for", notifyFor)
		m.told(h)
	}
	m.mu.Lock()
	m.running = false
	m.mu.Unlock()
}

// done reports whether every host has been told. If so, notifyAll ends.
func (m *Monitor) done() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.hosts {
		if e.owed {
			return false
		}
	}
	m.running = false
	return true
}

func (m *Monitor) owing() (all []Host) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.hosts {
		if e.owed {
			all = append(all, e.host)
		}
	}
	return all
}

func (m *Monitor) round(ctx context.Context, hosts []Host) {
	work := make(chan Host)
	var wg sync.WaitGroup
	for range min(notifyWorkers, len(hosts)) {
		wg.Go(func() {
			for h := range work {
				if err := m.notify(ctx, &h); err != nil {
					m.o.Log.Debug("telling a client of the restart", "client", h.Name, "address", h.Addr, "error", err)
					continue
				}
				m.told(h)
			}
		})
	}
	for _, h := range hosts {
		work <- h
	}
	close(work)
	wg.Wait()
}

func (m *Monitor) notify(ctx context.Context, h *Host) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	args := &nsm.StatChge{MonName: []byte(m.o.Hostname), State: m.State()}
	return m.o.Call.Call(ctx, h.callback(), nsm.SM_NOTIFY, args, &xdr.Void{})
}

func (m *Monitor) told(h Host) {
	m.drop(h, func(e *entry) { e.owed, e.kept = false, m.keeping })
}

// drop is forget. What stays on disk is told again after the next restart, which harms nobody.
func (m *Monitor) drop(h Host, change func(*entry)) {
	if err := m.forget(h.key(), change); err != nil {
		m.o.Log.Warn("a client stays in the list of those to be told", "client", h.Name, "error", err)
	}
}
