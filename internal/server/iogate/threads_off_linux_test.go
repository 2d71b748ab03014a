//go:build !nfsbox_cthreads || !cgo

package iogate

import (
	"strings"
	"testing"
)

// TestKindNotHad asks for a kind that the build does not have: Auto does its work, and
// the snapshot says why.
func TestKindNotHad(t *testing.T) {
	g := gate(t, Options{Kind: C})
	if s := g.Snapshot(); s.Kind != Auto || g.Kind() != Auto || s.Asked != C || !strings.Contains(s.Reason, "nfsbox_cthreads") {
		t.Errorf("%+v", s)
	}
	l, fd, p := g.Export("e"), file(t, []byte("content")), make([]byte, 7)
	enter(t, l, Read, 1)
	defer l.Leave(Read)
	if n, err := l.Pread(fd, p, 0); n != len(p) || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
}
