package ledger

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLedger writes few lines about one client, and no more than bounded ones about
// any number of clients; what was left out is counted in the next.
func TestLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		l := Ledger{Log: slog.New(slog.NewTextHandler(&b, nil))}
		lines := func() (all []string) {
			defer b.Reset()
			return strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		}
		for range 20_000 {
			l.Tell(slog.LevelInfo, "mount refused", "192.0.2.1", "/x")
			l.Tell(slog.LevelInfo, "mounted", "192.0.2.1", "/x")
		}
		if got := lines(); len(got) != 2 || !strings.Contains(got[0], "client=192.0.2.1") {
			t.Errorf("%q", got)
		}
		time.Sleep(Pause)
		l.Tell(slog.LevelInfo, "mount refused", "192.0.2.1", "/x")
		if got := lines(); len(got) != 1 || !strings.Contains(got[0], "left_out=19999") {
			t.Errorf("%q", got)
		}
		for i := range 20_000 {
			l.Tell(slog.LevelInfo, "mount refused", "192.0.2.1", fmt.Sprint(i))
		}
		if got := len(lines()); got > maxLoggedOf+1 {
			t.Errorf("%d lines about subjects of one client", got)
		}
		for i := range 20_000 {
			l.Tell(slog.LevelInfo, "mount refused", fmt.Sprint("client", i), "/x")
		}
		if got := len(lines()); got > maxLogged+2 || len(l.logged) > maxLogged+2 || got < maxLogged/2 {
			t.Errorf("%d lines, %d clients", got, len(l.logged))
		}
		time.Sleep(Pause)
		l.Tell(slog.LevelInfo, "mount refused", "another", "/x")
		if got := lines(); len(got) != 1 || len(l.logged) > 6 {
			t.Errorf("%q, %d clients", got, len(l.logged))
		}
	})
}

// TestLedgerMost bounds the lines of all clients together, and loses none of the count.
func TestLedgerMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		l := Ledger{Log: slog.New(slog.NewTextHandler(&b, nil)), Most: 5}
		for i := range 100 {
			l.Tell(slog.LevelInfo, "refused", fmt.Sprint("client", i), "")
		}
		if got := strings.Count(b.String(), "\n"); got != 5 || strings.Contains(b.String(), "left_out") {
			t.Errorf("%d lines, %s", got, &b)
		}
		time.Sleep(Pause)
		b.Reset()
		l.Tell(slog.LevelInfo, "refused", "another", "")
		if got := b.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "left_out=95") {
			t.Error(got)
		}
	})
}
