package export

import (
	"context"
	"sync"
	"time"
)

// Bounds of the look-ups that go to a name service: of names, addresses, groups.
const (
	// lookupWait is how long the rules of one export may keep a call waiting.
	// The look-up goes on, and a later call finds the answer.
	lookupWait = 2 * time.Second
	// lookupTime ends a look-up itself.
	lookupTime = 10 * time.Second
	// maxLookups is how many run at once, of each kind; the others wait. There
	// are as many for what is held (see memo), which wait for no others.
	maxLookups = 32
	// maxAnswers is how many answers are kept, of each kind, beside those that are
	// held, of which there are as many. At the bound one makes room that is not
	// waited for, and if there is none, nothing is looked up. One more is then not
	// held, unless one that is has not been renewed for keepFor.
	maxAnswers = 4096
	// An answer is taken as it is for freshFor, and then asked for again; it serves
	// until the new one is there, but no longer than keepFor, in which the service
	// fails. That there is nothing is taken so for missingFor, and not longer.
	freshFor   = 5 * time.Minute
	missingFor = 30 * time.Second
	keepFor    = time.Hour
	// retryAfter is when a failed look-up is tried again, and an answer that is
	// being renewed looked at again.
	retryAfter = 5 * time.Second
)

// memo remembers what a slow and unreliable service answers. An answer is a list,
// which may be empty. What a client was let in for is held: strangers, of whom there
// may be any number, displace only one another, and keep only one another waiting.
type memo[K comparable, E any] struct {
	ask    func(context.Context, K) ([]E, error)
	now    func() time.Time
	report func(error)
	slots  chan struct{} // one for each look-up that runs,
	own    chan struct{} // of what is held

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
	known  bool          // list has been answered,
	since  time.Time     // at this time
	until  time.Time     // ask again after that
	asking chan struct{} // while a look-up runs; closed at its end
	held   bool
}

// get returns what is known of k, at the latest when ctx ends, and until when
// that is good. ok is false if nothing is known.
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

// prepare starts the look-up of k if it is due, and waits for nothing.
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
	if a.known && len(a.list) == 0 {
		a.known = false
	}
	a.asking = make(chan struct{})
	slots := m.slots
	if a.held {
		slots = m.own
	}
	go m.run(k, a, slots)
	return a
}

// hold keeps what is known of k from being displaced by others that are not held.
func (m *memo[K, E]) hold(k K) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.answers[k]
	if a == nil || a.held || m.held >= maxAnswers && !m.release() {
		return
	}
	a.held = true
	m.held++
}

// release lets go of one that is held and was not renewed for long. The caller holds
// mu.
func (m *memo[K, E]) release() bool {
	for _, a := range m.answers {
		if a.held && a.asking == nil && m.now().Sub(a.since) > keepFor {
			m.loose(a)
			return true
		}
	}
	return false
}

// loose holds a no more. The caller holds mu.
func (m *memo[K, E]) loose(a *answer[E]) {
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
	// Maps are walked from a place of chance: a client that fills this one does not
	// choose which other that hits.
	for k, a := range m.answers {
		if a.asking == nil && !a.held {
			delete(m.answers, k)
			return true
		}
	}
	return false
}

// run looks k up. It outlives the call that wanted to know, for the next call's
// benefit, but not lookupTime.
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
			m.loose(a)
		}
	case len(list) == 0:
		m.loose(a)
		a.list, a.known, a.since, a.until = nil, true, now, now.Add(missingFor)
	default:
		a.list, a.known, a.since, a.until = list, true, now, now.Add(freshFor)
	}
	close(a.asking)
	a.asking = nil
}
