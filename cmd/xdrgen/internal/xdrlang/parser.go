package xdrlang

import (
	"errors"
	"strconv"
	"strings"
)

// Parse reads and checks a specification. file is for messages only. The error
// is an [ErrorList].
func Parse(file, src string) (*Spec, error) {
	if len(src) > MaxSource {
		return nil, ErrorList{Errorf(Pos{File: file, Line: 1, Col: 1},
			"the file has %d bytes, at most %d are read", len(src), MaxSource)}
	}
	p := &parser{lex: newLexer(file, src), spec: &Spec{File: file}}
	p.advance()
	for p.tok.kind != eof && len(p.errs) < MaxErrors {
		if err := p.definition(); err != nil {
			p.errs.add(err)
			p.recover()
		}
	}
	if err := p.errs.err(); err != nil {
		return nil, err
	}
	if err := check(p.spec); err != nil {
		return nil, err
	}
	return p.spec, nil
}

// parser is a recursive-descent parser with one token of look-ahead.
type parser struct {
	lex    *lexer
	tok    token
	tail   *string // where a comment behind what was just parsed goes
	braces int     // open at tok
	depth  int     // of bodies
	spec   *Spec
	errs   ErrorList
}

func (p *parser) advance() {
	switch p.tok.kind {
	case '{':
		p.braces++
	case '}':
		p.braces = max(p.braces-1, 0)
	}
	p.tok = p.lex.next()
}

// recover skips to the end of the definition in which an error was found.
func (p *parser) recover() {
	for p.tok.kind != eof {
		end := p.tok.kind == ';' && p.braces == 0
		p.advance()
		if end {
			return
		}
	}
}

func (p *parser) expected(what string) *Error {
	return Errorf(p.tok.pos, "expected %s, found %s", what, p.tok.describe())
}

func (p *parser) take(k kind) bool {
	if p.tok.kind != k {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(k kind, what string) *Error {
	if !p.take(k) {
		return p.expected(what)
	}
	return nil
}

func (p *parser) keyword(word string) bool {
	if p.tok.kind != ident || p.tok.text != word {
		return false
	}
	p.advance()
	return true
}

// reserved are the words that no definition may take for its name (RFC 4506,
// section 6.4; RFC 5531, section 12.2). long is ours to accept as a type.
var reserved = map[string]bool{
	"bool": true, "case": true, "const": true, "default": true, "double": true,
	"quadruple": true, "enum": true, "float": true, "hyper": true, "int": true,
	"long": true, "opaque": true, "string": true, "struct": true, "switch": true,
	"typedef": true, "union": true, "unsigned": true, "void": true,
	"program": true, "version": true,
}

// name consumes an identifier that is to be given a meaning or has one.
func (p *parser) name(what string) (token, *Error) {
	t := p.tok
	if t.kind != ident {
		return t, p.expected(what)
	}
	if reserved[t.text] {
		return t, Errorf(t.pos, "expected %s, found the reserved word %q", what, t.text)
	}
	if strings.Trim(t.text, "_") == "" {
		return t, Errorf(t.pos, "expected %s, found %q, which has no letter", what, t.text)
	}
	p.advance()
	return t, nil
}

func (p *parser) definition() *Error {
	t := p.tok
	if t.kind != ident {
		return p.expected("a definition (const, typedef, enum, struct, union or program)")
	}
	var err *Error
	switch t.text {
	case "const":
		err = p.constant()
	case "typedef":
		err = p.typedef()
	case "enum", "struct", "union":
		err = p.composite()
	case "program":
		err = p.program()
	default:
		return p.expected("a definition (const, typedef, enum, struct, union or program)")
	}
	if err != nil {
		return err
	}
	if err := p.expect(';', `";" behind the definition`); err != nil {
		return err
	}
	p.comment()
	return nil
}

// comment gives the comment that ended the line before to what was parsed
// there, unless that has a comment above it.
func (p *parser) comment() {
	if p.tail != nil && *p.tail == "" {
		*p.tail = p.tok.tail
	}
	p.tail = nil
}

func (p *parser) constant() *Error {
	doc := p.tok.doc
	p.advance()
	t, err := p.name("the name of a constant")
	if err != nil {
		return err
	}
	if err := p.expect('=', `"="`); err != nil {
		return err
	}
	x, err := p.value()
	if err != nil {
		return err
	}
	c := &Const{Pos: t.pos, Doc: doc, Name: t.text, Expr: *x}
	p.spec.Consts = append(p.spec.Consts, c)
	p.tail = &c.Doc
	return nil
}

func (p *parser) typedef() *Error {
	doc := p.tok.doc
	p.advance()
	d, err := p.declaration()
	if err != nil {
		return err
	}
	if d.Type.Kind == Void {
		return Errorf(d.Pos, "void is no type to define a name for")
	}
	p.define(d.Pos, doc, d)
	return nil
}

func (p *parser) define(pos Pos, doc string, d *Decl) {
	p.spec.Types = append(p.spec.Types, &TypeDef{Pos: pos, Doc: doc, Name: d.Name, Decl: d})
}

// composite parses "struct name {...}" and its kin as a definition.
func (p *parser) composite() *Error {
	word := p.tok
	p.advance()
	t, err := p.name("the name of the " + word.text)
	if err != nil {
		return err
	}
	typ, err := p.body(word)
	if err != nil {
		return err
	}
	p.define(t.pos, word.doc, &Decl{Pos: t.pos, Name: t.text, Type: typ})
	return nil
}

func (p *parser) value() (*Expr, *Error) {
	if p.tok.kind != number {
		t, err := p.name("a constant")
		if err != nil {
			return nil, err
		}
		return &Expr{Pos: t.pos, Name: t.text}, nil
	}
	t := p.tok
	p.advance()
	v, err := parseNumber(t)
	if err != nil {
		return nil, err
	}
	return &Expr{Pos: t.pos, Val: v}, nil
}

// parseNumber reads decimal, 0x hexadecimal and 0 octal numbers. Base 0 of
// strconv would take 0b, 0o and underscores as well, which XDR does not know.
func parseNumber(t token) (Value, *Error) {
	digits, neg := strings.CutPrefix(t.text, "-")
	base := 10
	switch {
	case strings.HasPrefix(digits, "0x"), strings.HasPrefix(digits, "0X"):
		digits, base = digits[2:], 16
	case len(digits) > 1 && digits[0] == '0':
		digits, base = digits[1:], 8
	}
	n, err := strconv.ParseUint(digits, base, 64)
	if errors.Is(err, strconv.ErrRange) || err == nil && neg && n > 1<<63 {
		return Value{}, Errorf(t.pos, "the number %s does not fit in 64 bits", t.text)
	}
	if err != nil {
		return Value{}, Errorf(t.pos, "expected a number, found %q", t.text)
	}
	return Value{Neg: neg && n != 0, Abs: n}, nil
}
