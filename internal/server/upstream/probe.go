package upstream

import (
	"encoding/hex"
	"strconv"
	"strings"
	"sync"
)

// Probe finds loops, for all exports of a server together. All methods may be called concurrently.
type Probe struct {
	prefix string // begins names that nobody else can know

	mu   sync.Mutex
	next int
	met  map[string]bool
}

// NewProbe makes a probe. rand fills its argument with randomness.
func NewProbe(rand func([]byte)) *Probe {
	var r [16]byte
	rand(r[:])
	return &Probe{prefix: ".nfsbox-proxy-" + hex.EncodeToString(r[:]) + "-", met: make(map[string]bool)}
}

// name is a name to be looked up.
func (p *Probe) name() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next++
	return p.prefix + strconv.Itoa(p.next)
}

// meets takes note of a name that came in, and reports whether it is one of ours.
func (p *Probe) meets(name string) bool {
	if !strings.HasPrefix(name, p.prefix) {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.met) < maxMet {
		p.met[name] = true
	}
	return true
}

// back reports whether the name has come in. It is asked once.
func (p *Probe) back(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	met := p.met[name]
	delete(p.met, name)
	return met
}
