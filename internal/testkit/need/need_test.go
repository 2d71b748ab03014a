package need

import (
	"fmt"
	"os"
	"testing"
)

// ended is a test that tells how it ended.
type ended struct {
	testing.TB
	how string
}

func (e *ended) Helper() {}

func (e *ended) Skipf(format string, args ...any)  { e.end("skipped: " + fmt.Sprintf(format, args...)) }
func (e *ended) Fatalf(format string, args ...any) { e.end("failed: " + fmt.Sprintf(format, args...)) }

// end notes the first end: a real test does not go on behind it.
func (e *ended) end(how string) {
	if e.how == "" {
		e.how = how
	}
}

func TestMissing(t *testing.T) {
	for require, want := range map[string]string{
		"":          "skipped: NOT TESTED with moon: it is new",
		"moonlight": "skipped: NOT TESTED with moon: it is new",
		"sun,moon":  "failed: NFSBOX_REQUIRE names moon: it is new",
	} {
		t.Setenv("NFSBOX_REQUIRE", require)
		e := &ended{}
		if Missing(e, "moon", "it is new"); e.how != want {
			t.Errorf("%q: %s, want %s", require, e.how, want)
		}
	}
}

func TestTool(t *testing.T) {
	t.Setenv("NFSBOX_REQUIRE", "")
	e := &ended{}
	if Tool(e, "moon", "no such program"); e.how == "" {
		t.Error("what is not there is there")
	}
	e = &ended{}
	if path := Tool(e, "go", "go"); e.how != "" || path == "" {
		t.Errorf("%q, %s", path, e.how)
	}
}

func TestRoot(t *testing.T) {
	t.Setenv("NFSBOX_REQUIRE", "")
	e := &ended{}
	if Root(e, "it takes root"); (e.how == "") != (os.Geteuid() == 0) {
		t.Errorf("uid %d: %q", os.Geteuid(), e.how)
	}
}

func TestTime(t *testing.T) {
	e, want := &ended{}, ""
	if testing.Short() {
		want = "skipped: NOT TESTED, -short leaves it out: the whole of it"
	}
	if Time(e, "the whole of it"); e.how != want {
		t.Errorf("%q, want %q", e.how, want)
	}
}

func TestSpeed(t *testing.T) {
	e, want := &ended{}, ""
	if Race {
		want = "skipped: NOT TESTED with the race detector: one goroutine"
	}
	if Speed(e, "one goroutine"); e.how != want {
		t.Errorf("%q, want %q", e.how, want)
	}
}
