//go:build linux

package conformance

import "sync"

// tail keeps the end of what is written to it, maxConsole bytes.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if len(t.b) > 2*maxConsole {
		t.b = append(t.b[:0], t.b[len(t.b)-maxConsole:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b[max(0, len(t.b)-maxConsole):])
}
