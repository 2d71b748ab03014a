package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// TestReportBounds: of very many failures with very many causes a page names some, and counts all.
func TestReportBounds(t *testing.T) {
	e := &env{ctx: t.Context(), rand: func(p []byte) { clear(p) }}
	page, err := (&reportFlags{Report: filepath.Join(t.TempDir(), "page.html")}).begin(e)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := page.drop(); err != nil {
			t.Error(err)
		}
	}()
	const causes, each = 3 * maxReportCauses, 2 * maxReportShown
	for i := range causes * each {
		x := progress.Event{Type: "difference", Kind: fmt.Sprint(i % causes), Path: "\x1b[31m" + strings.Repeat("x", 10), Message: "m"}
		if err := page.Event(time.Time{}, &x); err != nil {
			t.Fatal(err)
		}
	}
	n := uint64(0)
	for _, c := range page.causes {
		n += c.N
		if len(c.Shown) > maxReportShown || c.More() != c.N-maxReportShown || strings.Contains(c.Shown[0].Path, "\x1b") {
			t.Errorf("%s: %d shown, and %d more, of %d", c.What, len(c.Shown), c.More(), c.N)
		}
	}
	if len(page.causes) > maxReportCauses+1 || n != causes*each {
		t.Errorf("%d causes, of %d items", len(page.causes), n)
	}
}
