//go:build linux

package localio

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/session"
	"github.com/nfsbox/nfsbox/proto/localio"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestNotLocal fails the handshake in every way, and wants the reason, files that
// work, and nothing left behind.
func TestNotLocal(t *testing.T) {
	empty := t.TempDir()
	for _, c := range []struct {
		name string
		mode Mode
		set  func(*rig, *Options)
		why  string
	}{
		{"not spoken", Auto, func(r *rig, _ *Options) { r.mute.Store(true) }, "does not speak LOCALIO"},
		{"no socket", Auto, func(_ *rig, o *Options) { o.Dirs = []string{empty, "/nonexistent"} }, "no socket in " + empty + " or /nonexistent"},
		{"open directory", Auto, func(r *rig, _ *Options) { r.must(os.Chmod(r.dir, 0o777)) }, "cannot be used"},
		{"off", Off, func(*rig, *Options) {}, "switched off"},
		{"fake owner", Auto, func(r *rig, _ *Options) { r.set(func(k *knobs) { k.noBind = true }) }, "is not the server"},
		{"another server", Auto, func(r *rig, _ *Options) { r.set(func(k *knobs) { k.another = true }) }, "another server"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, inMemory(t))
			o := Options{Mode: c.mode, Dirs: []string{r.dir}}
			c.set(r, &o)
			o.Eager = true
			f := New(r.below, r, o)
			err := f.Ready(t.Context())
			if !errors.Is(err, ErrNotLocal) || !strings.Contains(err.Error(), c.why) {
				t.Errorf("ready: %v, want %q", err, c.why)
			}
			wantWhy(t, f, c.why)
			file, _ := open(t, f, "file", readWrite)
			write(t, file, "content", 0, vfs.Unstable)
			commit(t, file)
			wantBytes(t, file, 0, "content")
			if file.(vfs.Near).Near() {
				t.Error("a remote file is near")
			}
			r.wantTraffic(1, 1, 1)
			if err := file.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); !errors.Is(err, vfs.ErrInval) {
				t.Errorf("second close: %v", err)
			}
			if st := f.Stats(); st.State != "off" || st.Files != 0 {
				t.Errorf("stats %+v", st)
			}
		})
	}
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// TestReadyCancelled gives up waiting for a server that does not answer.
func TestReadyCancelled(t *testing.T) {
	r := newRig(t, inMemory(t))
	r.set(func(k *knobs) { k.noBind, k.hang = true, true })
	f := r.fs(Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := f.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ready: %v", err)
	}
	file, _ := open(t, f, "file", readWrite)
	write(t, file, "content", 0, vfs.Unstable)
}

// stall is a slog.Handler that has a session that becomes local wait until ctx ends.
type stall struct {
	slog.Handler
	ctx     context.Context
	reached chan struct{}
}

func (s *stall) Enabled(context.Context, slog.Level) bool { return true }

func (s *stall) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "past the network") {
		close(s.reached)
		<-s.ctx.Done()
	}
	return nil
}

// TestCloseWhileMeeting closes what is about to become local.
func TestCloseWhileMeeting(t *testing.T) {
	r := newRig(t, inMemory(t))
	ctx, cancel := context.WithCancel(t.Context())
	log := &stall{slog.DiscardHandler, ctx, make(chan struct{})}
	f := New(r.below, r, Options{Mode: Auto, Eager: true, Dirs: []string{r.dir}, Log: slog.New(log)})
	<-log.reached
	context.AfterFunc(f.s.ctx, func() { time.AfterFunc(20*time.Millisecond, cancel) })
	late := time.AfterFunc(time.Minute, func() {
		t.Error("Close waits for the server")
		r.kill()
	})
	defer late.Stop()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// TestCloseAtOnce closes what has hardly begun: a caller that waits for it is told.
func TestCloseAtOnce(t *testing.T) {
	r := newRig(t, inMemory(t))
	for range 50 {
		f := r.fs(Options{})
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := f.Ready(ctx); !errors.Is(err, ErrNotLocal) {
			t.Fatalf("ready: %v", err)
		}
		cancel()
	}
}

// TestServerRestarts ends sessions and sockets under files in use.
func TestServerRestarts(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{})
	file, _ := open(t, f, "file", readWrite)
	first := write(t, file, "0", 0, vfs.Unstable)
	rounds := 3 // each pause is longer than the one before
	if soak() {
		rounds = 7
	}
	for i := range rounds {
		n := f.Stats().Handshakes
		if i%2 == 0 {
			r.kill()
		} else {
			r.stop()
			r.start()
		}
		write(t, file, "x", uint64(i+1), vfs.Unstable)
		eventually(t, "a new session", func() bool { return f.Stats().Handshakes > n })
		wantBytes(t, file, 0, "0"+strings.Repeat("x", i+1))
	}
	if c := commit(t, file); c.Verf != first.Verf {
		t.Error("the verifier has changed though nothing was lost")
	}
	// What has been written over the network has been committed: from here on all
	// is local again.
	before := r.traffic()
	write(t, file, "y", 0, vfs.Unstable)
	commit(t, file)
	wantBytes(t, file, 0, "y"+strings.Repeat("x", rounds))
	if got := r.traffic(); got != before {
		t.Errorf("over the network %v, then %v", before, got)
	}
}

// TestHint is the quick way back: handshakes have failed, the pause is long, and a
// call is answered over the network.
func TestHint(t *testing.T) {
	if !soak() {
		t.Skip("takes its time (NFSBOX_SOAK=1); TestPause is about the same")
	}
	r := newRig(t, inMemory(t))
	f := r.ready(Options{})
	file, _ := open(t, f, "file", readWrite)
	wantBytes(t, file, 0, "")
	r.mute.Store(true)
	r.stop()
	eventually(t, "the end", func() bool { return f.Stats().State == "remote" })
	time.Sleep(2 * retryMin) // the pauses are longer than retryMin now
	r.mute.Store(false)
	r.start()
	start := time.Now()
	eventually(t, "a session", func() bool {
		wantBytes(t, file, 0, "")
		return f.Stats().State == "local"
	})
	if d := time.Since(start); d > retryMin+time.Second/2 {
		t.Errorf("it took %v", d)
	}
}

// TestPause has nobody wait, hints come, and the end.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shared{hint: make(chan struct{}, 1)}
		s.o.fill()
		s.ctx = t.Context()
		paused := func(d time.Duration) (time.Duration, bool) {
			start := time.Now()
			goes := s.pause(d)
			return time.Since(start), goes
		}
		for _, d := range []time.Duration{0, flapPause, retryMin, retryMax} {
			s.hear() // of no session that was lost
			if took, goes := paused(d); took < d/2 || took > d || !goes {
				t.Errorf("a pause of %v took %v (%t)", d, took, goes)
			}
		}
		s.hints.Store(2)
		for i := range 3 {
			s.hear()
			if took, _ := paused(retryMax); (took == retryMin) != (i < 2) || took > retryMax {
				t.Errorf("pause %d took %v", i, took)
			}
		}
		s.link.Store(new(link))
		s.hints.Store(1)
		s.hear()
		if took, _ := paused(retryMax); took < retryMax/2 {
			t.Errorf("with a session, calls shorten a pause to %v", took)
		}
		for _, after := range []time.Duration{retryMin / 2, 2 * retryMin} {
			ctx, cancel := context.WithCancel(t.Context())
			s.ctx = ctx
			time.AfterFunc(after, cancel)
			if took, goes := paused(retryMax); took != after || goes {
				t.Errorf("closed after %v, a pause took %v (%t)", after, took, goes)
			}
		}
		if _, goes := paused(0); goes {
			t.Error("closed, it goes on")
		}
	})
}

// TestHostileServer has the server send what it must not.
func TestHostileServer(t *testing.T) {
	type message = localio.SessionMessage
	for name, m := range map[string]func(p *peer, id uint32) (*message, *os.File){
		"unasked": func(_ *peer, id uint32) (*message, *os.File) {
			m := opened(id+1000, 5)
			return m, r0(t)
		},
		"slot 0":       func(_ *peer, id uint32) (*message, *os.File) { return opened(id, 0), r0(t) },
		"no such slot": func(_ *peer, id uint32) (*message, *os.File) { return opened(id, rigSlots+1), r0(t) },
		"no file":      func(_ *peer, id uint32) (*message, *os.File) { return opened(id, 5), pipe(t) },
		"appends":      func(_ *peer, id uint32) (*message, *os.File) { return opened(id, 5), appender(t) },
		"write only":   func(_ *peer, id uint32) (*message, *os.File) { return opened(id, 5), writer(t) },
		"second hello": func(*peer, uint32) (*message, *os.File) { return &message{Type: localio.SESSION_BOUND}, nil },
		"strange why": func(_ *peer, id uint32) (*message, *os.File) {
			m := opened(id, 5)
			m.Opened.Files[0].Why = 77
			return m, nil
		},
		"revokes chaff": func(*peer, uint32) (*message, *os.File) { return chaff(), nil },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, inMemory(t))
			f := r.ready(Options{})
			f.s.wait = openWait // not all of it is an answer
			r.hook.Store(&m)
			file, _ := open(t, f, "file", vfs.ShareRead)
			wantBytes(t, file, 0, "")
			r.hook.Store(nil)
			eventually(t, "a good session", func() bool {
				file, _ := open(t, f, "other", vfs.ShareRead)
				wantBytes(t, file, 0, "")
				return f.Stats().Reads > 0
			})
		})
	}
}

func opened(id, slot uint32) *localio.SessionMessage {
	m := &localio.SessionMessage{Type: localio.SESSION_OPENED}
	m.Opened.Files = []localio.SessionOpenedFile{{Id: id, Slot: slot, Generation: 1}}
	return m
}

func chaff() *localio.SessionMessage {
	m := &localio.SessionMessage{Type: localio.SESSION_REVOKED}
	m.Revoked.Files = []localio.SessionFile{{Slot: 0}, {Slot: 1 << 31, Generation: 5}, {Slot: 3}}
	return m
}

func r0(t *testing.T) *os.File       { return special(t, os.O_RDONLY|os.O_CREATE) }
func writer(t *testing.T) *os.File   { return special(t, os.O_WRONLY|os.O_CREATE) }
func appender(t *testing.T) *os.File { return special(t, os.O_RDWR|os.O_CREATE|os.O_APPEND) }

func special(t *testing.T, flags int) *os.File {
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "file"), flags, 0o600)
	if err != nil {
		t.Error(err)
	}
	return f
}

func pipe(t testing.TB) *os.File {
	r, w, err := os.Pipe()
	if err != nil {
		t.Error(err)
	}
	_ = w.Close()
	return r
}

// TestNoDescriptors has the process run out of them when some come.
func TestNoDescriptors(t *testing.T) {
	r := newRig(t, inMemory(t))
	f := r.ready(Options{})
	full := true
	l := f.s.link.Load()
	idle, _ := open(t, f, "idle", vfs.ShareRead)
	wantBytes(t, idle, 0, "")
	if err := idle.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	file, h := open(t, f, "file", vfs.ShareRead)
	n := f.s.find(h)
	defer f.s.drop(n)
	// As receive does when session.Conn says session.ErrNoDescriptors.
	a := &ask{l: l, n: n, key: key{f.who, vfs.ShareRead}, done: make(chan struct{})}
	n.mu.Lock()
	n.asks[a.key] = a
	n.mu.Unlock()
	f.s.hold(n)
	if !f.s.reserve(l) {
		t.Fatal("no room")
	}
	l.mu.Lock()
	a.id = 1 << 30
	l.pending[a.id] = a
	l.mu.Unlock()
	if err := l.opened([]localio.SessionOpenedFile{{Id: a.id, Slot: 9, Generation: 1}}, nil, full); err != nil {
		t.Fatal(err)
	}
	wantBytes(t, file, 0, "")
	if r.traffic()[0] == 0 {
		t.Error("the file is local")
	}
	wantWhy(t, f, "no more descriptors")
	eventually(t, "the idle one is closed, and the slot given back", func() bool { return r.closes.Load() == 2 && f.Stats().Files == 0 })
}

// TestModes: a mode that is none says so.
func TestModes(t *testing.T) {
	if s := Mode(9).String(); s != "Mode(9)" {
		t.Error(s)
	}
	if session.Dirs() == nil {
		t.Error("no directory to look for sockets in")
	}
}
