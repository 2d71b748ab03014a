package main

import (
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/tools/manual"
)

// TestExamples: the page of each command shows how it is used, and what it ends with.
func TestExamples(t *testing.T) {
	app, err := whole()
	if err != nil {
		t.Fatal(err)
	}
	program := manual.Of(app)
	for _, page := range manual.Pages(&program, "1", "2026-11-28") {
		name := strings.TrimSuffix(page.File, ".1")
		command := strings.ReplaceAll(strings.ReplaceAll(name, "nfsbox-", "nfsbox "), "-", " ")
		_, examples, ok := strings.Cut(page.Text, "\n.SH EXAMPLES\n")
		if !ok || !strings.Contains(strings.ReplaceAll(examples, `\`, ""), command) {
			t.Errorf("%s has no example of it", page.File)
		}
		for _, want := range []string{".SH EXIT STATUS\n", ".SH SEE ALSO\n", `1 "2026-11-28" "nfsbox 1"`} {
			if !strings.Contains(page.Text, want) {
				t.Errorf("%s lacks %q", page.File, want)
			}
		}
	}
}
