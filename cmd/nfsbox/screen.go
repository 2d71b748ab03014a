package main

import (
	"cmp"
	"io"
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

// printHelp prints what --help shows.
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
	if _, err = io.WriteString(out, manual.FoldHelp(text.String(), e.helpColumns())); err != nil {
		return &outputError{err}
	}
	return nil
}
