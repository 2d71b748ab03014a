package daemon

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/daemon/config"
)

// environ is an environment made up.
func environ(pairs ...string) Manager {
	m := make(map[string]string)
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return Manager{Getenv: func(name string) string { return m[name] }, PID: 77}
}

// TestNotify tells the service manager of the start, a reload and the end.
func TestNotify(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	said := func() string {
		t.Helper()
		b := make([]byte, 1<<10)
		if err := l.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		n, err := l.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:n])
	}
	c, hangup := confOf(t.TempDir(), t.TempDir()), make(chan os.Signal)
	u, _, stop := runIn(t, c, World{
		Manager: environ("NOTIFY_SOCKET", path, "WATCHDOG_USEC", "20000", "WATCHDOG_PID", "77"),
		Reload:  hangup, Reread: func() (*config.Config, error) { c := c; c.Fill(); return &c, nil },
	})
	if got := said(); got != "READY=1\nSTATUS=Serving "+u {
		t.Errorf("at the start: %q", got)
	}
	if got := said(); got != "WATCHDOG=1" {
		t.Errorf("then: %q", got)
	}
	next := func() string { // but for signs of life
		for {
			if s := said(); s != "WATCHDOG=1" {
				return s
			}
		}
	}
	hangup <- os.Interrupt
	if got := next(); !strings.HasPrefix(got, "RELOADING=1\nMONOTONIC_USEC=") {
		t.Errorf("at a reload: %q", got)
	} else if _, err := strconv.ParseUint(got[strings.LastIndexByte(got, '=')+1:], 10, 64); err != nil {
		t.Error(err)
	}
	if got := next(); !strings.HasPrefix(got, "READY=1\n") {
		t.Errorf("after a reload: %q", got)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	if got := next(); !strings.HasPrefix(got, "STOPPING=1\n") {
		t.Errorf("at the end: %q", got)
	}
}

// TestNotifyNobody serves on when there is nobody to be told.
func TestNotifyNobody(t *testing.T) {
	_, log, stop := runIn(t, confOf(t.TempDir(), t.TempDir()), World{Manager: environ("NOTIFY_SOCKET", filepath.Join(t.TempDir(), "none"))})
	if err := stop(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(log.String(), "service manager") {
		t.Errorf("nothing is said of it:\n%s", log)
	}
}

func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ping, stop := environ("WATCHDOG_USEC", "60000000", "WATCHDOG_PID", "77").watchdog()
		defer stop()
		start := time.Now()
		<-ping
		if d := time.Since(start); d != 30*time.Second {
			t.Errorf("a sign of life after %v", d)
		}
	})
	for _, m := range []Manager{
		{}, environ("WATCHDOG_USEC", "0"), environ("WATCHDOG_USEC", "-5"), environ("WATCHDOG_USEC", "9999999999999999"),
		environ("WATCHDOG_USEC", "60000000", "WATCHDOG_PID", "78"),
	} {
		if ping, _ := m.watchdog(); ping != nil {
			t.Errorf("WATCHDOG_USEC=%q of %q is taken", m.get("WATCHDOG_USEC"), m.get("WATCHDOG_PID"))
		}
	}
}

// TestInheritNothing takes over what is meant for this process alone.
func TestInheritNothing(t *testing.T) {
	for _, m := range []Manager{{}, environ(), environ("LISTEN_FDS", "1", "LISTEN_PID", "78"), environ("LISTEN_FDS", "1")} {
		if listeners, err := m.inherited(); err != nil || len(listeners) != 0 {
			t.Errorf("%v, %v", listeners, err)
		}
	}
	for _, n := range []string{"x", "-1", "65"} {
		if _, err := environ("LISTEN_FDS", n, "LISTEN_PID", "77").inherited(); err == nil {
			t.Errorf("LISTEN_FDS=%s passes", n)
		}
	}
}
