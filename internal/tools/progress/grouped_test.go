package progress

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestGrouped shows three failures of each cause, and counts the others; the file of failures
// has all of them, with their codes.
func TestGrouped(t *testing.T) {
	var text, file bytes.Buffer
	p := New(Both(Grouped(Line(&text), "F has all"), JSON(&file)), time.Now)
	for i := range 1000 {
		err := fmt.Errorf("f%d: %w", i, vfs.ErrNoSpace)
		p.Report(Event{Type: "error", Path: fmt.Sprintf("dir/f%d", i), Message: err.Error(), Err: err})
		p.Report(Event{Type: "difference", Kind: "mode", Path: fmt.Sprint(i)})
	}
	err := errors.New("odd")
	p.Report(Event{Type: "error", Path: "x", Message: "x: odd", Err: err})
	p.Report(Event{Type: "error", Path: "src", Message: "all: is lost", Err: err, Advice: "find it", Whole: true})
	if err := p.Finish(nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(text.String(), "no space"); got != shownAlike+1 || !strings.Contains(text.String(), "997 more like these: no space left on device (F has all)") {
		t.Errorf("%d failures are shown:\n%s", got, text.String())
	}
	if strings.Contains(text.String(), "lost") || strings.Count(file.String(), `"message":"odd","advice":"find it"`) != 1 {
		t.Errorf("the error of the whole, which the caller tells people of:\n%s%s", text.String(), file.String())
	}
	if strings.Count(text.String(), "odd") != 1 || strings.Count(text.String(), "difference") != 1000 {
		t.Errorf("other events:\n%s", text.String())
	}
	if got := strings.Count(file.String(), `"error":{"code":"ENOSPC","message":"`); got != 1000 || strings.Count(file.String(), "\n") != 2003 {
		t.Errorf("the file has %d of 1000:\n%s", got, file.String())
	}
}

// TestGroupedBounded: a run whose every failure has another cause keeps no more than it may.
func TestGroupedBounded(t *testing.T) {
	var text bytes.Buffer
	g := Grouped(Line(&text), "F has all").(*grouped)
	for i := range 10000 {
		if err := g.Event(time.Time{}, &Event{Type: "error", Message: fmt.Sprint("cause ", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(g.causes) > maxCauses+1 {
		t.Errorf("%d causes are kept", len(g.causes))
	}
}
