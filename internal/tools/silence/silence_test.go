package silence

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/server/bucket"
)

// TestOutagesAreToldOnce has several connections tell of the same server.
func TestOutagesAreToldOnce(t *testing.T) {
	now := time.Now()
	silent := bucket.Silence{Server: "filer:2049", Since: now.Add(-5 * time.Second), Until: now.Add(time.Minute)}
	over := bucket.Silence{Server: "filer:2049", Since: silent.Since, Over: true}
	other := bucket.Silence{Server: "other:2049", Since: now, Until: now.Add(time.Minute)}
	ending := bucket.Silence{Server: "third:2049", Since: now, Until: now}
	var told []string
	tell := (&outages{show: func(e *Event) { told = append(told, e.Type+" "+e.Server) }}).tell
	for _, s := range []bucket.Silence{silent, silent, other, over, over, silent, ending, over} {
		tell(s)
	}
	want := "[silent filer:2049 silent other:2049 answers filer:2049 silent filer:2049 answers filer:2049]"
	if got := fmt.Sprint(told); got != want {
		t.Errorf("told %v\nwant %v", got, want)
	}
}

// TestOutageGoesOn: calls still wait after the time that was given. The new time is told, once.
func TestOutageGoesOn(t *testing.T) {
	now := time.Now()
	past := bucket.Silence{Server: "filer:2049", Since: now.Add(-time.Minute), Until: now.Add(time.Minute)}
	later := bucket.Silence{Server: past.Server, Since: past.Since, Until: now.Add(time.Hour)}
	var told []time.Time
	o := &outages{show: func(e *Event) { told = append(told, *e.Until) }}
	o.tell(past)
	o.silent[past.Server] = now.Add(-time.Second) // as if it had been until then
	o.tell(later)
	o.tell(later)
	if want := []time.Time{past.Until.UTC(), later.Until.UTC()}; !slices.Equal(told, want) {
		t.Errorf("told %v, want %v", told, want)
	}
}

// TestSilenceText says which server, since when, and until when it is waited for.
func TestSilenceText(t *testing.T) {
	at := time.Date(2026, 3, 4, 15, 4, 5, 0, time.Local)
	for want, s := range map[string]bucket.Silence{
		"nfsbox: filer:2049 has not answered since 15:04:00; the first call gives up at 15:07:00\n":                          {Since: at.Add(-5 * time.Second), Until: at.Add(175 * time.Second)},
		"nfsbox: filer:2049 has not answered since 15:04:00; the first call gives up at 2026-03-06 15:04:05\n":               {Since: at.Add(-5 * time.Second), Until: at.Add(48 * time.Hour)},
		"nfsbox: filer:2049 has not answered since 15:04:00; waiting until it does\n":                                        {Since: at.Add(-5 * time.Second)},
		"nfsbox: filer:2049 has served no request since 15:04:00 (HTTP 503 SlowDown); the first call gives up at 15:05:07\n": {Since: at.Add(-5 * time.Second), Until: at.Add(62 * time.Second), Why: "HTTP 503 SlowDown"},
		"nfsbox: filer:2049 answers again, after 5s\n":                                                                       {Since: at.Add(-5 * time.Second), Over: true},
	} {
		s.Server = "filer:2049"
		if got := newEvent(s, at).Line(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
