// Package logbuf keeps a log for tests, which read it while it is written.
package logbuf

import (
	"bytes"
	"sync"
)

// Buffer is a log in memory. The zero Buffer is empty. Its methods may be called concurrently.
type Buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write appends p, and never fails.
func (l *Buffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String returns what has been written so far.
func (l *Buffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
