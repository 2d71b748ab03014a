package nsm

import (
	"bytes"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/nfsserver/internal/callback"
)

var (
	alice = Host{Name: "alice.example.org", Addr: netip.MustParseAddr("192.0.2.11"), Local: netip.MustParseAddr("192.0.2.1")}
	bob   = Host{Name: "bob", Addr: netip.MustParseAddr("2001:db8::2%eth0")}
	carol = Host{Name: "carol"}
)

// open starts a monitor that calls nobody, and answers what it logs.
func open(t *testing.T, dir string) (*Monitor, *bytes.Buffer, error) {
	t.Helper()
	log := &bytes.Buffer{}
	m, err := New(Options{Dir: dir, Hostname: "server", Call: &callback.Caller{}, Log: slog.New(slog.NewTextHandler(log, nil)),
		Now: func() time.Time { return time.Unix(1<<30, 0) }})
	if err == nil {
		t.Cleanup(m.Close)
	}
	return m, log, err
}

func mustOpen(t *testing.T, dir string) (*Monitor, *bytes.Buffer) {
	t.Helper()
	m, log, err := open(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	return m, log
}

func TestStateAndHostsSurvive(t *testing.T) {
	dir := t.TempDir()
	m, _ := mustOpen(t, dir)
	first := m.State()
	if first&1 == 0 || first <= 0 {
		t.Errorf("state %d", first)
	}
	for _, h := range []Host{alice, bob, carol, alice} {
		if err := m.Watch(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Unwatch(carol); err != nil {
		t.Fatal(err)
	}
	if err := m.Unwatch(carol); err != nil {
		t.Fatal(err)
	}
	m.Close()
	m, log := mustOpen(t, dir)
	if m.State() != first+2 || m.Owed() != 2 || m.Watched() != 0 || log.Len() != 0 {
		t.Errorf("state %d after %d, %d owed, %d watched: %s", m.State(), first, m.Owed(), m.Watched(), log)
	}
	for _, h := range m.owing() {
		if h != alice && h != bob {
			t.Errorf("came back as %+v", h)
		}
	}
	// One that locks again before it is told stays on disk when it has been.
	if err := m.Watch(alice); err != nil {
		t.Fatal(err)
	}
	m.told(alice)
	m.told(bob)
	if m.Owed() != 0 || m.Watched() != 1 {
		t.Errorf("%d owed, %d watched", m.Owed(), m.Watched())
	}
	m, _ = mustOpen(t, dir)
	if m.Owed() != 1 {
		t.Errorf("%d owed", m.Owed())
	}
}

// TestDamage starts over state directories in which something is not as it was
// written.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	m, _ := mustOpen(t, dir)
	for _, h := range []Host{alice, bob} {
		if err := m.Watch(h); err != nil {
			t.Fatal(err)
		}
	}
	first := m.State()
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	state, host := read(stateFile), read(hostFile(alice.key()))
	later := func(b []byte) []byte {
		b = bytes.Clone(b[:len(b)-sumBytes])
		b[len(magic)+3] = version + 1
		return reseal(b)
	}
	for name, tc := range map[string]struct {
		file  string
		with  []byte
		owed  int
		state int32 // 0: by the clock
		fails bool
	}{
		"nothing":              {"other", []byte("of somebody else"), 2, first + 2, false},
		"state torn":           {stateFile, state[:len(state)-1], 2, 0, false},
		"state empty":          {stateFile, nil, 2, 0, false},
		"state even":           {stateFile, encodeState(4), 2, 0, false},
		"state at its end":     {stateFile, encodeState(1<<31 - 1), 2, 1, false},
		"state of later":       {stateFile, later(state), 0, 0, true},
		"host torn":            {hostFile(alice.key()), host[:20], 1, first + 2, false},
		"host flipped":         {hostFile(alice.key()), append(host[:30:30], append([]byte{host[30] ^ 1}, host[31:]...)...), 1, first + 2, false},
		"host huge":            {hostFile(alice.key()), bytes.Repeat(host, 1000), 1, first + 2, false},
		"host under two names": {hostFile(carol.key()), host, 2, first + 2, false},
		"host not finished":    {hostFile(carol.key()) + newSuffix, host[:10], 2, first + 2, false},
		"host of later":        {hostFile(alice.key()), later(host), 0, 0, true},
		"host without a name":  {hostFile(alice.key()), encodeHost(&Host{}), 1, first + 2, false},
		"host without address": {hostFile(carol.key()), encodeHost(&carol), 3, first + 2, false},
	} {
		t.Run(name, func(t *testing.T) {
			copied := t.TempDir()
			if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(copied, tc.file), tc.with, 0o600); err != nil {
				t.Fatal(err)
			}
			m, log, err := open(t, copied)
			if tc.fails {
				if !errors.Is(err, ErrVersion) {
					t.Errorf("%v", err)
				}
				if b, err := os.ReadFile(filepath.Join(copied, tc.file)); err != nil || !bytes.Equal(b, tc.with) {
					t.Errorf("what a later version wrote is gone: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := tc.state
			if want == 0 {
				want = int32(fresh(time.Unix(1<<30, 0))+2) & (1<<31 - 1)
			}
			if m.Owed() != tc.owed || m.State() != want {
				t.Errorf("%d owed, state %d, want %d and %d: %s", m.Owed(), m.State(), tc.owed, want, log)
			}
			if lost := tc.owed != 2 && !strings.HasPrefix(name, "host without address") || strings.HasPrefix(name, "state") && tc.state == 0; lost != (log.Len() > 0) && tc.file != hostFile(carol.key()) && tc.file != hostFile(carol.key())+newSuffix {
				t.Errorf("log: %s", log)
			}
		})
	}
}

// reseal puts a checksum behind b.
func reseal(b []byte) []byte {
	sealed := seal(b[len(magic)+4:])
	copy(sealed, b)
	return append(sealed[:len(b)], sum(sealed[:len(b)])...)
}

func TestUnwritable(t *testing.T) {
	if _, _, err := open(t, filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("a state directory that is not there")
	}
	dir := t.TempDir()
	m, _ := mustOpen(t, dir)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := m.Watch(alice); err == nil || m.Watched() != 0 {
		t.Errorf("%v, %d watched", err, m.Watched())
	}
}

func TestNothingKept(t *testing.T) {
	m, _ := mustOpen(t, "")
	if err := m.Watch(alice); err != nil {
		t.Fatal(err)
	}
	if err := m.Unwatch(alice); err != nil {
		t.Fatal(err)
	}
	if m.State()&1 == 0 || m.Owed() != 0 {
		t.Errorf("state %d, %d owed", m.State(), m.Owed())
	}
}

func TestFull(t *testing.T) {
	m, _ := mustOpen(t, "")
	for i := range maxHosts {
		if err := m.Watch(Host{Name: "h", Addr: netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})}); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Watch(alice); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
	if err := m.Watch(Host{Name: "h", Addr: netip.AddrFrom4([4]byte{10, 0, 0, 0})}); err != nil {
		t.Error(err)
	}
}

func TestSameName(t *testing.T) {
	for _, tc := range []struct {
		a, b string
		same bool
	}{
		{"a", "a", true}, {"A.b", "a.B", true}, {"a.b", "a", true}, {"a", "a.b.c", true}, {"a.b", "a.c", false},
		{"a", "b", false}, {"10", "10.0.0.1", false}, {"10.0.0.1", "10.0.0.1", true}, {"", "", true}, {"", "a", false},
	} {
		if SameName(tc.a, tc.b) != tc.same || SameName(tc.b, tc.a) != tc.same {
			t.Errorf("%q and %q: %t", tc.a, tc.b, !tc.same)
		}
	}
}

func FuzzDecodeHost(f *testing.F) {
	for _, h := range []Host{alice, bob, carol} {
		f.Add(encodeHost(&h))
	}
	f.Add(encodeState(7))
	f.Fuzz(func(t *testing.T, b []byte) {
		if h, err := decodeHost(b); err == nil {
			if again, err := decodeHost(encodeHost(&h)); err != nil || again != h {
				t.Errorf("%+v came back as %+v: %v", h, again, err)
			}
		}
		if n, err := decodeState(b); err == nil && !bytes.Equal(encodeState(n), b) {
			t.Errorf("state %d", n)
		}
	})
}
