package main

import (
	"cmp"
	godoc "go/doc/comment"
	"io"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// On a terminal sentences are broken at its width: help, messages, verdicts, reports. Rows that
// show names (ls, stat, exports, cat) and commands to be typed are not: a terminal wraps them so
// that they can be copied whole.

// messages is stderr as a command writes to it: on a terminal lines are broken at its width.
func (e *env) messages() io.Writer {
	if e.errSize == nil {
		return e.stderr
	}
	return folding{e.stderr, e.width, ": " + quoteArg(cmp.Or(e.name, "nfsbox")) + " "}
}

// folding breaks lines that are wider than a terminal. What has no end of line, such as a line
// of progress, and what steers the terminal passes as it is.
type folding struct {
	to      io.Writer
	width   func() int
	command string // how a command begins that is to be typed: it stays whole, on a line of its own
}

func (f folding) Write(b []byte) (int, error) {
	var out strings.Builder
	for line := range strings.Lines(string(b)) {
		out.WriteString(f.fold(line))
	}
	if _, err := io.WriteString(f.to, out.String()); err != nil {
		return 0, err
	}
	return len(b), nil
}

func (f folding) fold(line string) string {
	text, erases := strings.CutPrefix(line, progress.Erase)
	text, ends := strings.CutSuffix(text, "\n")
	width := f.width()
	if !ends || strings.Contains(text, "\x1b") || progress.Columns(text) <= width {
		return line
	}
	command := ""
	if at := strings.Index(text, f.command); at >= 0 {
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

// fold breaks a text's lines at the width of the terminal that stdout is. Those that go on are
// indented, by a quarter of the width at most.
func (e *env) fold(text string, indent int) string {
	if e.size == nil {
		return text
	}
	width, _ := e.size()
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

const (
	// helpWidth is how wide help is at most, in columns.
	helpWidth = 80
	// narrowHelp is the width below which what a flag does stands below it, and not beside.
	narrowHelp = 72
)

// helpColumns is how wide help is.
func (e *env) helpColumns() int {
	if e.size == nil {
		return helpWidth
	}
	width, _ := e.size()
	return min(width, helpWidth)
}

// printHelp prints what --help shows. kong has go/doc lay it out, which marks headings as in
// a comment of Go: the mark goes.
func (e *env) printHelp(o kong.HelpOptions, ctx *kong.Context) error {
	var text strings.Builder
	out := ctx.Stdout
	ctx.Stdout = &text
	o.WrapUpperBound = e.helpColumns()
	err := kong.DefaultHelpPrinter(o, ctx)
	ctx.Stdout = out
	if err != nil {
		return err
	}
	if _, err = io.WriteString(out, foldHelp(unmarked(text.String()), e.helpColumns())); err != nil {
		return &outputError{err}
	}
	return nil
}

// laidOut is a text laid out as kong has help laid out.
func (e *env) laidOut(text string) string {
	width := e.helpColumns()
	p := godoc.Printer{TextWidth: width, TextCodePrefix: "    "}
	return foldHelp(unmarked(string(p.Text(new(godoc.Parser).Parse(text)))), width)
}

// unmarked is a text without the marks of its headings.
func unmarked(text string) string { return strings.ReplaceAll(text, "\n# ", "\n") }

var (
	// helpRow is a row of two columns as kong prints it: an argument, a flag or a command, and behind
	// a gap what it does. helpGoesOn is a further line of that.
	helpRow    = regexp.MustCompile(`^( {2,6}\S.*?)(?: {4,}(\S.*))?$`)
	helpGoesOn = regexp.MustCompile(`^ {8,}(\S.*)$`)
	// listRow is a row of a list in a text: a status, or an argument of a URL, and what it means. A
	// comment behind an example is none. listGoesOn is a further line.
	listRow    = regexp.MustCompile(`^( {4,6}\S+)(?: {2,}([^#\s].*))?$`)
	listGoesOn = regexp.MustCompile(`^ {20,}(\S.*)$`)
)

// foldHelp breaks the lines of help that kong does not: that of the usage, long rows of lists and, where
// it is narrow, its two columns, of which the second then stands below the first. Examples stay as
// they are.
func foldHelp(text string, width int) string {
	var out strings.Builder
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	row, goesOn := listRow, listGoesOn
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		cells := row.FindStringSubmatch(line)
		first := i
		for narrow := width < narrowHelp; narrow && cells != nil && i+1 < len(lines); i++ {
			on := goesOn.FindStringSubmatch(lines[i+1])
			if on == nil {
				break
			}
			cells[2] += " " + on[1]
		}
		switch {
		case width < narrowHelp && cells != nil && (cells[2] != "" || row == helpRow):
			out.WriteString(progress.Fold("  "+strings.TrimLeft(cells[1], " "), width, 4) + "\n")
			line = progress.Fold("    "+strings.TrimLeft(cells[2], " "), width, 4)
		case cells != nil && i == first && cells[2] != "" && row == listRow:
			line = progress.Fold(line, width, strings.LastIndex(line, cells[2]))
		case !strings.HasPrefix(line, " "):
			if strings.HasSuffix(line, ":") && i+1 < len(lines) && strings.HasPrefix(lines[i+1], " ") {
				row, goesOn = helpRow, helpGoesOn
			}
			line = progress.Fold(line, width, 2)
		}
		out.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return out.String()
}
