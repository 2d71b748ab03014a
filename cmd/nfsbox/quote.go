package main

import (
	"fmt"
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/progress"
)

// quoteArg quotes an argument for a shell. Characters that could control a terminal are written
// as $'...', which bash, zsh, ksh and POSIX.1-2024 understand.
func quoteArg(s string) string {
	switch {
	case s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:,@%=") == "":
		return s
	case progress.Clean(strings.ReplaceAll(s, `\`, "")) == strings.ReplaceAll(s, `\`, ""):
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for _, c := range []byte(s) {
		switch {
		case c == '\'' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('\'')
	return b.String()
}
