package export

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestGate lets in every client that any rule of any export admits.
func TestGate(t *testing.T) {
	table := testTable(t, Key{},
		Export{Path: "/a", FS: memory(), Clients: []Rule{{Match: "10.0.0.0/8"}}},
		Export{Path: "/b", FS: memory(), Clients: []Rule{{Match: "192.0.2.1", Secure: true}, {Match: "2001:db8::/32"}}},
	)
	for addr, want := range map[string]bool{
		"10.1.2.3:40000": true, "[::ffff:10.1.2.3]:40000": true, "192.0.2.1:700": true, "192.0.2.1:1024": false,
		"[2001:db8::9]:40000": true, "192.0.2.2:700": false, "[::1]:700": false,
	} {
		if got := table.Gate(remote(addr)).Admits(); got != want {
			t.Errorf("%s: %v", addr, got)
		}
		want = want || addr == "192.0.2.1:1024" // a rule knows it, but not from there
		if got, err := table.Gate(remote(addr)).Knows(t.Context()); got != want || err != nil {
			t.Errorf("%s is known: %v, %v", addr, got, err)
		}
	}
	g := table.Gate(remote("192.0.2.2:700"))
	if n := testing.AllocsPerRun(100, func() { g.Admits() }); g.Admits() || n != 0 {
		t.Errorf("a gate that was asked before allocates %v times", n)
	}
	if err := table.Replace(Export{Path: "/a", FS: memory()}); err != nil {
		t.Fatal(err)
	}
	if !g.Admits() {
		t.Error("the gate did not see that the exports were replaced")
	}
}

// TestGateNames refuses a client while its name is not known, does not wait for the
// name, and admits the client as soon as it is known.
func TestGateNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, r, _ := named(t, "h.example.org")
		block := make(chan struct{})
		r.set(func(r *resolver) { r.block, r.addrs["h.example.org."] = block, []string{"192.0.2.7"} })
		known, other := table.Gate(remote("192.0.2.7:700")), table.Gate(remote("192.0.2.8:700"))
		before := time.Now()
		if known.Admits() || other.Admits() || time.Since(before) != 0 {
			t.Error("somebody was let in before the name was known, or waited for it")
		}
		close(block)
		synctest.Wait()
		if !known.Admits() || other.Admits() {
			t.Error("the name has come, and the gate does not go by it")
		}
	})
}

// TestGateKnowsNames waits for a name, and says so if it cannot be looked up.
func TestGateKnowsNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, r, _ := named(t, "h.example.org")
		block := make(chan struct{})
		r.set(func(r *resolver) { r.block, r.addrs["h.example.org."] = block, []string{"192.0.2.7"} })
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if known, err := table.Gate(remote("192.0.2.7:700")).Knows(ctx); known || err == nil {
			t.Errorf("before the name has come: %v, %v", known, err)
		}
		time.AfterFunc(time.Second, func() { close(block) })
		for addr, want := range map[string]bool{"192.0.2.7:700": true, "192.0.2.8:700": false} {
			if known, err := table.Gate(remote(addr)).Knows(t.Context()); known != want || err != nil {
				t.Errorf("%s: %v, %v", addr, known, err)
			}
		}
	})
}

// TestViewAdmits judges by the export that the handle is of.
func TestViewAdmits(t *testing.T) {
	table := testTable(t, Key{},
		Export{Path: "/a", FS: memory(), Clients: []Rule{{Match: "10.0.0.1"}}},
		Export{Path: "/b", FS: memory(), Clients: []Rule{{Match: "10.0.0.2"}}})
	h, _, err := table.For(remote("10.0.0.1:700"), nil).Mount(t.Context(), "/a")
	if err != nil {
		t.Fatal(err)
	}
	altered := h
	altered.Bytes()[altered.Len()-1] ^= 1
	for _, x := range []struct {
		from string
		h    vfs.Handle
		want error
	}{{"10.0.0.1:700", h, nil}, {"10.0.0.2:700", h, vfs.ErrAccess}, {"10.0.0.1:700", altered, vfs.ErrStale}} {
		if err := table.For(remote(x.from), nil).Admits(t.Context(), x.h); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", x.from, err, x.want)
		}
	}
}
