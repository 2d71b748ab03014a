package terminal

import (
	"io"
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// Messages writes messages to a terminal, and breaks the lines that are wider. What has no end of line, such as a line
// of progress, and what steers the terminal passes as it is.
type Messages struct {
	To      io.Writer
	Width   func() int // of the terminal, in columns
	Command string     // how a command begins that is to be typed: it stays whole, on a line of its own
}

// Write writes whole lines.
func (m Messages) Write(b []byte) (int, error) {
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		out.WriteString(m.fold(line))
	}
	if _, err := io.WriteString(m.To, out.String()); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (m Messages) fold(line string) string {
	text, erases := strings.CutPrefix(line, progress.Erase)
	text, ends := strings.CutSuffix(text, "\n")
	width := m.Width()
	if !ends || strings.Contains(text, "\x1b") || progress.Columns(text) <= width {
		return line
	}
	command := ""
	if at := strings.Index(text, m.Command); at >= 0 {
		text, command = text[:at+1], "\n  "+text[at+2:]
	}
	text = progress.Fold(text, width, hanging(text, width)) + command + "\n"
	if erases {
		return progress.Erase + text
	}
	return text
}

// hanging is how far the lines that go on with a message are indented: as far as its text is.
func hanging(text string, width int) int {
	rest := strings.TrimLeft(text, " ")
	n := len(text) - len(rest)
	switch {
	case strings.HasPrefix(rest, "nfsbox: "):
		n += len("nfsbox: ")
	case strings.HasPrefix(rest, "-> "):
		n += len("-> ")
	default:
		n += 2
	}
	return min(n, width/4)
}

// Fold breaks a text's lines at a width. Those that go on are indented, by a quarter of the width at most.
func Fold(text string, width, indent int) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		line, ended := strings.CutSuffix(line, "\n")
		out.WriteString(progress.Fold(line, width, min(indent, width/4)))
		if ended {
			out.WriteByte('\n')
		}
	}
	return out.String()
}
