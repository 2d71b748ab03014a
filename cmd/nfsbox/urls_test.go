package main

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox"
)

// urlsPage is docs/urls.md.
func urlsPage() string {
	var b strings.Builder
	b.WriteString("# URLs\n\nWhat `nfsbox help urls` prints, from the table by which they are parsed.\n")
	for _, s := range urlSections() {
		if s.title != "" {
			b.WriteString("\n## " + s.title + "\n")
		}
		text := strings.ReplaceAll("\n"+s.text+"\n", "\n  ", "\n    ")
		b.WriteString(strings.ReplaceAll(text, "*, [ and ?", "`*`, `[` and `?`"))
	}
	b.WriteString("\n| argument | is |\n|-|-|\n")
	for _, a := range nfsbox.URLArgs() {
		b.WriteString("| `" + strings.ReplaceAll(argForm(a), "|", `\|`) + "` | " + a.Help + " |\n")
	}
	return b.String()
}

var update = flag.Bool("update", false, "write the page anew")

// TestDocsURLs: docs/urls.md says what nfsbox help urls does.
func TestDocsURLs(t *testing.T) {
	const name = "../../docs/urls.md"
	want := urlsPage()
	if *update {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(name); err != nil || string(got) != want {
		t.Errorf("%v: %s is not as the table has it; go test -run TestDocsURLs ./cmd/nfsbox -update writes it", err, name)
	}
	for line := range strings.Lines((*urlsCmd)(nil).Help()) {
		if len(line) > 120 {
			t.Errorf("a line of %d bytes: %s", len(line), line)
		}
	}
}
