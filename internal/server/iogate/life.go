package iogate

// New makes a gate. A kind that is not to be had here is replaced by Auto, and
// Snapshot says why; an error means that the options make no sense.
func New(o Options) (*Gate, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	g := &Gate{o: o, exports: make(map[string]*Lanes)}
	g.kind, g.reason, g.pool = choose(&g.o)
	g.nowait.init(g.kind)
	g.keep()
	return g, nil
}

// Kind is the kind in force.
func (g *Gate) Kind() Kind { return g.kind }

// Close refuses calls from now on, those that wait included, with ErrClosed. It waits for
// those inside to leave, and ends the gate's threads.
func (g *Gate) Close() error {
	g.mu.Lock()
	if g.closing != nil {
		g.mu.Unlock()
		return ErrClosed
	}
	g.closing = make(chan struct{})
	g.fast.Store(0)
	g.waiting.Add(1) // so that each call that leaves looks in
	g.dismiss()
	g.mu.Unlock()
	<-g.closing
	if g.pool == nil {
		return nil
	}
	return g.pool.b.close()
}

// Export returns the lanes of the export called name: the same ones each time, until each
// caller has closed them. So a reload of the configuration keeps counts, and calls that
// are under way.
func (g *Gate) Export(name string) *Lanes {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := g.exports[name]
	if l == nil {
		l = &Lanes{g: g, name: name}
		g.exports[name] = l
		g.settleIn(l)
	}
	l.users++
	return l
}

// Close says that a caller of Export needs the lanes no more, and has no call under way
// there. After the last Close the gate forgets the name and its counts, and keeps its
// places for the next export. It is called once for each Export.
func (l *Lanes) Close() {
	if l == nil {
		return
	}
	l.g.mu.Lock()
	defer l.g.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(l.g.exports, l.name)
		l.cell.exports--
	}
}
