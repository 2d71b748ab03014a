// Package manual makes manual pages and shell completions from a command's own
// definitions: what is parsed, what --help says, what the manual says and what
// the shell offers are one text and cannot differ.
//
// [Of] takes what is to be known from the parser's model; everything else is a
// pure function of that [Command]. [Pages] are pages in roff, one a command, in
// the macros of man(7), which groff and mandoc both read; they bear no date, so
// that equal definitions make equal pages. [Bash], [Zsh] and [Fish] are scripts that
// need nothing of the program at completion time: they know its commands, its
// flags and those of their values that can be listed.
//
// Help texts are a program's own and trusted; they are quoted for the sake of
// punctuation.
package manual
