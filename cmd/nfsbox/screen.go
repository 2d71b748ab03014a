package main

import (
	"cmp"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/nfsbox/nfsbox/internal/tools/manual"
	"github.com/nfsbox/nfsbox/internal/tools/terminal"
)

// On a terminal sentences are broken at its width: help, messages, verdicts, reports. Rows that
// show names (ls, stat, exports, cat) and commands to be typed are not: a terminal wraps them so
// that they can be copied whole.

// messages is stderr as a command writes to it: on a terminal lines are broken at its width.
func (e *env) messages() io.Writer {
	if e.errSize == nil {
		return e.stderr
	}
	return terminal.Messages{To: e.stderr, Width: e.width, Command: ": " + quoteArg(cmp.Or(e.name, "nfsbox")) + " "}
}

// fold breaks a text's lines at the width of the terminal that stdout is.
func (e *env) fold(text string, indent int) string {
	if e.size == nil {
		return text
	}
	width, _ := e.size()
	return terminal.Fold(text, width, indent)
}

// width is how many columns the terminal of stderr has now.
func (e *env) width() int {
	if e.errSize == nil {
		return terminal.UsualWidth
	}
	width, _ := e.errSize()
	return width
}

// helpWidth is how wide help is at most, in columns.
const helpWidth = 80

// helpColumns is how wide help is.
func (e *env) helpColumns() int {
	if e.size == nil {
		return helpWidth
	}
	width, _ := e.size()
	return min(width, helpWidth)
}

// printHelp prints what --help shows: how a command is called, its flags, and then all that there is to say. -h
// leaves that out, but for maxExamples.
func (e *env) printHelp(o kong.HelpOptions, ctx *kong.Context) error {
	text, err := e.usage(o, ctx)
	if err != nil {
		return err
	}
	if node := ctx.Selected(); node != nil {
		more := "DESCRIPTION\n\n" + node.Detail
		if e.brief {
			more = briefly(node)
		}
		text += "\n" + manual.LaidOut(more, e.helpColumns())
	}
	if _, err = io.WriteString(ctx.Stdout, text); err != nil {
		return &outputError{err}
	}
	return nil
}

// usage is how what is called is called, and its flags: kong's help, without the text of a command.
func (e *env) usage(o kong.HelpOptions, ctx *kong.Context) (string, error) {
	var text strings.Builder
	out, node := ctx.Stdout, ctx.Selected()
	ctx.Stdout = &text
	defer func() { ctx.Stdout = out }()
	if node != nil {
		detail := node.Detail
		node.Detail = ""
		defer func() { node.Detail = detail }()
	}
	o.WrapUpperBound = e.helpColumns()
	err := kong.DefaultHelpPrinter(o, ctx)
	return manual.FoldHelp(text.String(), e.helpColumns()), err
}

// maxExamples is how many examples -h shows: the first ones.
const maxExamples = 3

// briefly is what -h says of a command besides its flags.
func briefly(node *kong.Node) string {
	var text strings.Builder
	n := 0
	for line := range strings.Lines(node.Detail) {
		if strings.HasPrefix(line, "  nfsbox ") && !strings.HasSuffix(line, "\\\n") && n < maxExamples {
			text.WriteString(line)
			n++
		}
	}
	if n > 0 {
		return "EXAMPLES\n\n" + text.String() + "\n" + node.FullPath() + " --help says more."
	}
	return node.FullPath() + " --help says more."
}

// brief reports whether args ask for help by -h, and customary has made words of them.
func brief(args, words []string) bool {
	return slices.Contains(args, "-h") && !slices.Contains(words, "-h") && !slices.Contains(args, "--help")
}
