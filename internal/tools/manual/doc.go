// Package manual makes manual pages and shell completions from a command's own definitions:
// the parser, --help, the manual and the shell use one text, and cannot differ.
//
// [Of] takes what is needed from the parser's model; everything else is a pure function of
// that [Command]. [Pages] are pages in roff, one for each command, in the macros of man(7),
// which groff and mandoc both read. They bear no date, so that equal definitions make equal
// pages. [Bash], [Zsh], [Fish] and [PowerShell] are scripts. They contain the program's commands, its flags and those of
// their values that can be listed. For places and names of jobs alone they call the program. [FoldHelp] fits help to a
// terminal.
//
// Help texts are the program's own and trusted. They are quoted only because of their
// punctuation.
package manual
