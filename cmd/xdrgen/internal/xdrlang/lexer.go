package xdrlang

import (
	"fmt"
	"strings"
)

// kind is the kind of a token. Punctuation is its own kind, by its byte.
type kind int

const (
	eof kind = 256 + iota
	ident
	number
	bad // a byte that starts no token, or a comment without an end
)

type token struct {
	kind kind
	text string
	pos  Pos
	doc  string // the comment that ends on the line above, or on the same line
	tail string // the comment behind the token before, on its line
}

func (t token) describe() string {
	switch t.kind {
	case eof:
		return "the end of the file"
	case bad:
		return t.text
	}
	return fmt.Sprintf("%q", t.text)
}

// lexer cuts a specification into tokens. Comments and '%' lines are not
// tokens; a comment right above a token travels with it as its doc.
type lexer struct {
	file      string
	src       string
	off       int
	line      int
	lineStart int

	tokLine int // of the token before
	tail    []string
	doc     []string
	docLine int // the line on which the last comment in doc ended
}

func newLexer(file, src string) *lexer { return &lexer{file: file, src: src, line: 1} }

func (l *lexer) pos() Pos { return Pos{File: l.file, Line: l.line, Col: l.off - l.lineStart + 1} }

func (l *lexer) newline() {
	l.off++
	l.line++
	l.lineStart = l.off
}

// next returns the next token; at the end it returns eof for ever.
func (l *lexer) next() token {
	l.doc, l.tail, l.docLine = nil, nil, 0
	if err := l.skipSpace(); err != nil {
		return *err
	}
	t := token{kind: eof, pos: l.pos(), tail: strings.Join(l.tail, "\n")}
	if l.docLine >= l.line-1 {
		t.doc = strings.Join(l.doc, "\n")
	}
	l.tokLine = l.line
	if l.off >= len(l.src) {
		return t
	}
	start := l.off
	c := l.src[l.off]
	switch {
	case isLetter(c):
		l.scan(func(c byte) bool { return isLetter(c) || isDigit(c) })
		t.kind = ident
	case isDigit(c) || c == '-' && l.off+1 < len(l.src) && isDigit(l.src[l.off+1]):
		l.off++
		l.scan(func(c byte) bool { return isLetter(c) || isDigit(c) })
		t.kind = number
	case strings.IndexByte("{}[]<>()*,;:=", c) >= 0:
		l.off++
		t.kind = kind(c)
	default:
		l.off++
		return token{kind: bad, text: fmt.Sprintf("the character %q", rune(c)), pos: t.pos}
	}
	t.text = l.src[start:l.off]
	return t
}

func (l *lexer) scan(in func(byte) bool) {
	for l.off < len(l.src) && in(l.src[l.off]) {
		l.off++
	}
}

// skipSpace skips white space, comments and '%' lines. It returns a bad token
// for a comment that does not end.
func (l *lexer) skipSpace() *token {
	for l.off < len(l.src) {
		rest := l.src[l.off:]
		switch {
		case rest[0] == '\n':
			l.newline()
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r' || rest[0] == '\f' || rest[0] == '\v':
			l.off++
		case rest[0] == '%' && l.off == l.lineStart:
			l.skipLine()
		case strings.HasPrefix(rest, "//"):
			start := l.off
			l.skipLine()
			l.comment(l.src[start+2:l.off], l.line)
		case strings.HasPrefix(rest, "/*"):
			pos := l.pos()
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				l.off = len(l.src)
				return &token{kind: bad, text: "a comment that does not end", pos: pos}
			}
			l.skipBlock(n + 4)
			l.comment(rest[2:2+n], pos.Line)
		default:
			return nil
		}
	}
	return nil
}

func (l *lexer) skipLine() {
	for l.off < len(l.src) && l.src[l.off] != '\n' {
		l.off++
	}
}

// skipBlock skips n bytes that may hold line ends.
func (l *lexer) skipBlock(n int) {
	for end := l.off + n; l.off < end; {
		if l.src[l.off] == '\n' {
			l.newline()
		} else {
			l.off++
		}
	}
}

// comment keeps the text of a comment that began on line first and ended on the
// present one: for the token before if that is on the same line, else for the
// token that comes. A blank line between two comments drops the first.
func (l *lexer) comment(text string, first int) {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "*"))
		if line != "" || len(lines) > 0 {
			lines = append(lines, line)
		}
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	if first == l.tokLine {
		l.tail = append(l.tail, lines...)
		return
	}
	if l.docLine < first-1 {
		l.doc = nil
	}
	l.doc = append(l.doc, lines...)
	l.docLine = l.line
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
