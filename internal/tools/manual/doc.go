// Package manual makes manual pages and shell completions from a command's own definitions:
// the parser, --help, the manual and the shell use one text, and cannot differ.
//
// [Of] takes what is needed from the parser's model; everything else is a pure function of
// that [Command]. [Pages] are pages in roff, one for each command, in the macros of man(7),
// which groff and mandoc both read. They bear no date, so that equal definitions make equal
// pages. [Bash], [Zsh] and [Fish] are scripts that do not call the program at completion
// time: they contain its commands, its flags and the listable values of those.
//
// Help texts are the program's own and trusted. They are quoted only because of their
// punctuation.
package manual
