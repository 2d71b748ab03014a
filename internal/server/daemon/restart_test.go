package daemon

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/logbuf"
)

// removeRecord is a REMOVE as it goes over the wire.
func removeRecord(dir []byte, name string) []byte {
	opaque := func(b, s []byte) []byte {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
		return append(b, make([]byte, -len(s)&3)...)
	}
	b := make([]byte, 4)
	for _, v := range []uint32{0x1234567, 0, 2, 100003, 3, 12, 0, 0, 0, 0} { // AUTH_NONE
		b = binary.BigEndian.AppendUint32(b, v)
	}
	b = opaque(opaque(b, dir), []byte(name))
	binary.BigEndian.PutUint32(b, uint32(len(b)-4)|1<<31)
	return b
}

// ask sends a record on a connection of its own, and returns the reply's.
func ask(t *testing.T, u string, record []byte) []byte {
	t.Helper()
	parsed, err := url.Parse(u)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", parsed.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	head := make([]byte, 4)
	err = c.SetDeadline(time.Now().Add(time.Minute))
	if _, e := c.Write(record); err == nil {
		err = e
	}
	if _, e := io.ReadFull(c, head); err == nil {
		err = e
	}
	reply := make([]byte, binary.BigEndian.Uint32(head)&(1<<16-1))
	if _, e := io.ReadFull(c, reply); err != nil || e != nil {
		t.Fatal(err, e)
	}
	return reply
}

// TestRepliesOutliveRestart asks for the same change again after a restart: the
// answer is the one that was given, and what has come in between stays.
func TestRepliesOutliveRestart(t *testing.T) {
	t.Parallel()
	tree, state, random := t.TempDir(), t.TempDir(), counter()
	path := filepath.Join(tree, "file")
	write := func() {
		t.Helper()
		if err := os.WriteFile(path, []byte("x"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(tree, 0o777); err != nil {
		t.Fatal(err)
	}
	write()
	u, _, stop := runIn(t, confOf(tree, state), World{Rand: random})
	c := client(t, u)
	record := removeRecord(mount(t, c, "/"), "file")
	hangUp(t, c)
	first := ask(t, u, record)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("REMOVE was not made: %v, %x", err, first)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	write()
	u, log, stop := runIn(t, confOf(tree, state), World{Rand: random})
	if got := ask(t, u, record); !bytes.Equal(got, first) {
		t.Errorf("the answer is %x, and was %x", got, first)
	}
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the change was made twice: %v", err)
	}
	if !strings.Contains(log.String(), "replies=1") {
		t.Errorf("the log does not tell of the reply:\n%s", log)
	}
	if left, err := filepath.Glob(filepath.Join(state, "*", repliesName)); err != nil || len(left) != 0 {
		t.Errorf("the file is still there: %q, %v", left, err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// TestHandover begins a server while the one before it still runs, and one that
// cannot listen in between: neither loses what the first has yet to leave.
func TestHandover(t *testing.T) {
	t.Parallel()
	tree, state, random := t.TempDir(), t.TempDir(), counter()
	for _, err := range []error{os.Chmod(tree, 0o777), os.WriteFile(filepath.Join(tree, "file"), nil, 0o666)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	u, _, stop := runIn(t, confOf(tree, state), World{Rand: random})
	c := client(t, u)
	record := removeRecord(mount(t, c, "/"), "file")
	hangUp(t, c)
	first := ask(t, u, record)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := taken.Close(); err != nil {
			t.Error(err)
		}
	}()
	bad := confOf(tree, state)
	bad.Metrics = taken.Addr().String()
	log, ended := &signalLog{said: make(chan string), goOn: make(chan struct{}), want: "waiting for its end"}, make(chan error, 1)
	go func() {
		ended <- Serve(t.Context(), bad, World{Rand: random, Log: log}, func(Running) error { return errors.New("it serves") })
	}()
	<-log.said
	err = stop()
	close(log.goOn)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "metrics: ") || !strings.Contains(err.Error(), "--metrics") {
		t.Fatalf("the second one ended with %v", err)
	}
	u, _, stop = runIn(t, confOf(tree, state), World{Rand: random})
	if got := ask(t, u, record); !bytes.Equal(got, first) {
		t.Errorf("the answer is %x, and was %x", got, first)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
}

// TestStateHeld does not begin while another server has the state.
func TestStateHeld(t *testing.T) {
	tree, state := t.TempDir(), t.TempDir()
	_, _, _ = run(t, confOf(tree, state))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := Serve(ctx, confOf(tree, state), World{Rand: counter()}, func(Running) error { return errors.New("it serves") })
	if err == nil || !strings.Contains(err.Error(), "another server runs with") {
		t.Error(err)
	}
}

// TestStateWaits: a server that goes on to serve is waited for shortly, and one that is ending, or does not say
// which, for as long as its end may take.
func TestStateWaits(t *testing.T) {
	own := t.TempDir()
	holder := &daemon{own: own}
	if err := holder.holdState(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := holder.held.Close(); err != nil {
			t.Error(err)
		}
	}()
	long := 10*time.Second + handoverTime
	number := fmt.Sprint(os.Getpid())
	for text, want := range map[string]time.Duration{
		number + " serving\n": endingTime, number + " ending\n": long, number: long, "": long,
		number + " serving and more": long, strings.Repeat("9", 2*maxHolder): long,
	} {
		if err := os.WriteFile(holder.held.Name(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		synctest.Test(t, func(t *testing.T) {
			c, log, begun := confOf(own, own), &logbuf.Buffer{}, time.Now()
			d := &daemon{own: own, c: &c, log: slog.New(slog.NewTextHandler(log, nil))}
			err := d.holdState(t.Context())
			if err == nil || !strings.Contains(err.Error(), "another server runs with") {
				t.Errorf("%q: %v", text, err)
			}
			if took := time.Since(begun); took < want || took > want+handoverTick {
				t.Errorf("%q: %v, want %v", text, took, want)
			}
			if n := strings.Count(log.String(), "most="+want.String()); n != 1 {
				t.Errorf("%q: the log says %d times how long:\n%s", text, n, log)
			}
			if err := d.held.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	// One that begins to end is waited for longer.
	holder.tellStage(stageServing)
	synctest.Test(t, func(t *testing.T) {
		c, begun := confOf(own, own), time.Now()
		d := &daemon{own: own, c: &c, log: slog.New(slog.DiscardHandler)}
		time.AfterFunc(endingTime/2, func() { holder.tellStage(stageEnding) })
		if err := d.holdState(t.Context()); err == nil || time.Since(begun) < long {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		if err := d.held.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestStateHeldNotWaited: a server whose address is none of this host does not wait for another one's end first.
func TestStateHeldNotWaited(t *testing.T) {
	own := t.TempDir()
	holder := &daemon{own: own}
	if err := holder.holdState(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.held.Close() }() // nothing was written
	synctest.Test(t, func(t *testing.T) {
		c, log, begun := confOf(own, own), &logbuf.Buffer{}, time.Now()
		c.PortmapListen = []string{"192.0.2.1:111"} // of no host (RFC 5737)
		d := &daemon{own: own, c: &c, log: slog.New(slog.NewTextHandler(log, nil))}
		err := d.holdState(t.Context())
		if err == nil || !strings.Contains(err.Error(), "this host has no such address") || time.Since(begun) > 0 || log.String() != "" {
			t.Errorf("after %v: %v\n%s", time.Since(begun), err, log)
		}
		if err := d.held.Close(); err != nil {
			t.Error(err)
		}
	})
}

// signalLog tells when it has been told what it waits for, and then keeps the server that has told it.
type signalLog struct {
	said chan string
	goOn chan struct{} // closed when the server may go on
	want string
	once sync.Once
}

func (l *signalLog) Write(p []byte) (int, error) {
	if strings.Contains(string(p), l.want) {
		l.once.Do(func() { l.said <- l.want })
		<-l.goOn
	}
	return len(p), nil
}
