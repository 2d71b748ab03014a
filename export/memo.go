package export

import (
	"context"
	"sync"
	"time"
)

// Bounds of the look-ups of names, addresses and groups.
const (
	// lookupWait is how long a call waits for the names in the rules of one export
	// and for a user's groups, together. Then it is vfs.ErrBusy, which has the client
	// try again. The look-up goes on, and a later call finds the answer.
	lookupWait = 2 * time.Second
	// lookupTime is the timeout of a look-up itself.
	lookupTime = 10 * time.Second
	// maxLookups is how many look-ups of each kind run at once; the others wait.
	// As many again are reserved for answers that are held (see memo).
	maxLookups = 32
	// maxAnswers is how many answers of each kind are kept. As many again may be
	// held. At the bound, an answer that no look-up is renewing makes room; if there
	// is none, nothing is looked up. With maxAnswers
	// held, a new one replaces one that was not renewed for keepFor.
	maxAnswers = 4096
	// An answer is fresh for freshFor. The first use after that renews it, and the
	// old answer serves until the look-up ends, or after it if it fails. An answer
	// older than keepFor never serves. An empty answer is good for missingFor, and
	// never serves while it is renewed.
	freshFor   = 5 * time.Minute
	missingFor = 30 * time.Second
	keepFor    = time.Hour
	// retryAfter is when a failed look-up is tried again, and when to look again at
	// an answer that is being renewed.
	retryAfter = 5 * time.Second
)

// memo is a cache of what a slow and unreliable service answers. An answer is a list,
// which may be empty. An answer by which a client was let in is held: it cannot be
// displaced by strangers, however many there are, and its look-ups do not wait for
// theirs.
type memo[K comparable, E any] struct {
	ask    func(context.Context, K) ([]E, error)
	now    func() time.Time
	report func(error)
	slots  chan struct{} // one for each look-up that runs
	own    chan struct{} // the same, for answers that are held

	mu      sync.Mutex
	answers map[K]*answer[E] // guarded by mu
	held    int              // guarded by mu; of answers
}

func newMemo[K comparable, E any](o *Options, ask func(context.Context, K) ([]E, error)) memo[K, E] {
	return memo[K, E]{
		ask: ask, now: o.Now, report: o.Report,
		slots: make(chan struct{}, maxLookups), own: make(chan struct{}, maxLookups), answers: make(map[K]*answer[E]),
	}
}

// answer is guarded by the memo's mu.
type answer[E any] struct {
	list   []E
	known  bool          // list has been answered
	since  time.Time     // when it was answered
	until  time.Time     // ask again after that
	asking chan struct{} // not nil while a look-up runs; closed at its end
	held   bool
}

// get returns the answer for k, and until when it is good. It waits for the look-up
// only if there is no answer yet, and no longer than ctx. ok is false if nothing is
// known.
func (m *memo[K, E]) get(ctx context.Context, k K) (list []E, until time.Time, ok bool) {
	m.mu.Lock()
	a := m.start(k)
	if a == nil || a.known || a.asking == nil {
		defer m.mu.Unlock()
		return m.read(a)
	}
	asking := a.asking
	m.mu.Unlock()
	select {
	case <-asking:
	case <-ctx.Done():
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.read(a)
}

// read is what a says now. The caller holds mu.
func (m *memo[K, E]) read(a *answer[E]) ([]E, time.Time, bool) {
	soon := m.now().Add(retryAfter)
	if a == nil {
		return nil, soon, false
	}
	if a.asking != nil || a.until.Before(soon) {
		return a.list, soon, a.known
	}
	return a.list, a.until, a.known
}

// prepare starts the look-up of k if it is due, and does not wait.
func (m *memo[K, E]) prepare(k K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.start(k)
}

// start returns the answer of k and starts a look-up if there is none, or an old
// one. It returns nil if there is no room. The caller holds mu.
func (m *memo[K, E]) start(k K) *answer[E] {
	a := m.answers[k]
	if a != nil && (a.asking != nil || m.now().Before(a.until)) {
		return a
	}
	if a == nil {
		if !m.room() {
			return nil
		}
		a = &answer[E]{}
		m.answers[k] = a
	}
	if len(a.list) == 0 || m.now().Sub(a.since) > keepFor {
		a.list, a.known = nil, false
	}
	a.asking = make(chan struct{})
	slots := m.slots
	if a.held {
		slots = m.own
	}
	go m.run(k, a, slots)
	return a
}

// hold keeps the answer for k from being displaced by those that are not held.
func (m *memo[K, E]) hold(k K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.answers[k]
	if a == nil || a.held || m.held >= maxAnswers && !m.unholdOld() {
		return
	}
	a.held = true
	m.held++
}

// unholdOld looks for an answer that is held but was not renewed for keepFor, and holds
// it no more. The caller holds mu.
func (m *memo[K, E]) unholdOld() bool {
	for _, a := range m.answers {
		if a.held && a.asking == nil && m.now().Sub(a.since) > keepFor {
			m.unhold(a)
			return true
		}
	}
	return false
}

// unhold lets a be displaced again. The caller holds mu.
func (m *memo[K, E]) unhold(a *answer[E]) {
	if a.held {
		a.held = false
		m.held--
	}
}

// room makes room for an answer. The caller holds mu.
func (m *memo[K, E]) room() bool {
	if len(m.answers)-m.held < maxAnswers {
		return true
	}
	// Go walks maps from a random place: a client that fills this one cannot choose
	// which answer is displaced.
	for k, a := range m.answers {
		if a.asking == nil && !a.held {
			delete(m.answers, k)
			return true
		}
	}
	return false
}

// run looks k up. It may outlive the call that asked, so that the next call finds the
// answer, but not lookupTime.
func (m *memo[K, E]) run(k K, a *answer[E], slots chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTime)
	defer cancel()
	var list []E
	var err error
	select {
	case slots <- struct{}{}:
		list, err = m.ask(ctx, k)
		<-slots
	case <-ctx.Done():
		err = ctx.Err()
	}
	m.mu.Lock()
	m.note(a, list, err)
	m.mu.Unlock()
	if err != nil {
		m.report(err)
	}
}

// note ends a look-up. The caller holds mu.
func (m *memo[K, E]) note(a *answer[E], list []E, err error) {
	now := m.now()
	switch {
	case err != nil:
		a.until = now.Add(retryAfter)
		if now.Sub(a.since) > keepFor {
			a.list, a.known = nil, false
			m.unhold(a)
		}
	case len(list) == 0:
		m.unhold(a)
		a.list, a.known, a.since, a.until = nil, true, now, now.Add(missingFor)
	default:
		a.list, a.known, a.since, a.until = list, true, now, now.Add(freshFor)
	}
	close(a.asking)
	a.asking = nil
}
