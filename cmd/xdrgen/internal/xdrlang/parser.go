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
	braces int // open at tok
	depth  int // of bodies
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

// take consumes punctuation k if it is next.
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

// keyword consumes the word if it is next.
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
	return p.expect(';', `";" behind the definition`)
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
	p.spec.Consts = append(p.spec.Consts, &Const{Pos: t.pos, Doc: doc, Name: t.text, Expr: *x})
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

// body parses what follows the word enum, struct or union (and a name).
func (p *parser) body(word token) (*Type, *Error) {
	if p.depth >= MaxNesting {
		return nil, Errorf(word.pos, "types nest deeper than %d", MaxNesting)
	}
	p.depth++
	defer func() { p.depth-- }()
	t := &Type{Pos: word.pos}
	var err *Error
	switch word.text {
	case "enum":
		t.Kind = EnumKind
		t.Enum, err = p.enum()
	case "struct":
		t.Kind = StructKind
		t.Fields, err = p.fields()
	case "union":
		t.Kind = UnionKind
		t.Union, err = p.union()
	}
	return t, err
}

func (p *parser) enum() (*Enum, *Error) {
	if err := p.expect('{', `"{"`); err != nil {
		return nil, err
	}
	e := &Enum{}
	for {
		t, err := p.name("the name of an enumerator")
		if err != nil {
			return nil, err
		}
		m := &Member{Pos: t.pos, Doc: t.doc, Name: t.text}
		if p.take('=') {
			if m.Expr, err = p.value(); err != nil {
				return nil, err
			}
		}
		e.Members = append(e.Members, m)
		if p.take('}') {
			return e, nil
		}
		if err := p.expect(',', `"," or "}"`); err != nil {
			return nil, err
		}
		if p.take('}') { // a comma behind the last, as C has it
			return e, nil
		}
	}
}

func (p *parser) fields() ([]*Decl, *Error) {
	if err := p.expect('{', `"{"`); err != nil {
		return nil, err
	}
	var fields []*Decl
	for {
		d, err := p.declaration()
		if err != nil {
			return nil, err
		}
		if d.Type.Kind == Void {
			return nil, Errorf(d.Pos, "expected a field, found void")
		}
		fields = append(fields, d)
		if err := p.expect(';', `";"`); err != nil {
			return nil, err
		}
		if p.take('}') {
			return fields, nil
		}
	}
}

func (p *parser) union() (*Union, *Error) {
	if !p.keyword("switch") {
		return nil, p.expected(`"switch"`)
	}
	if err := p.expect('(', `"("`); err != nil {
		return nil, err
	}
	u := &Union{}
	var err *Error
	if u.Disc, err = p.declaration(); err != nil {
		return nil, err
	}
	if err := p.expect(')', `")"`); err != nil {
		return nil, err
	}
	if err := p.expect('{', `"{"`); err != nil {
		return nil, err
	}
	for p.tok.kind != '}' {
		arm, err := p.arm()
		if err != nil {
			return nil, err
		}
		if n := len(u.Arms); n > 0 && len(u.Arms[n-1].Cases) == 0 {
			return nil, Errorf(arm.Pos, `expected "}", for the default arm is the last one`)
		}
		u.Arms = append(u.Arms, arm)
	}
	if len(u.Arms) == 0 || len(u.Arms[0].Cases) == 0 {
		return nil, p.expected(`"case"`)
	}
	p.advance()
	return u, nil
}

func (p *parser) arm() (*Arm, *Error) {
	arm := &Arm{Pos: p.tok.pos}
	if p.keyword("default") {
		if err := p.expect(':', `":"`); err != nil {
			return nil, err
		}
	} else {
		for p.keyword("case") {
			x, err := p.value()
			if err != nil {
				return nil, err
			}
			arm.Cases = append(arm.Cases, x)
			if err := p.expect(':', `":"`); err != nil {
				return nil, err
			}
		}
		if len(arm.Cases) == 0 {
			return nil, p.expected(`"case", "default" or "}"`)
		}
	}
	var err *Error
	if arm.Decl, err = p.declaration(); err != nil {
		return nil, err
	}
	return arm, p.expect(';', `";"`)
}

// declaration parses a type, the marks around a name, and the name.
func (p *parser) declaration() (*Decl, *Error) {
	d := &Decl{Pos: p.tok.pos, Doc: p.tok.doc}
	var err *Error
	if d.Type, err = p.typeSpecifier(); err != nil {
		return nil, err
	}
	if d.Type.Kind == Void {
		return d, nil
	}
	if p.take('*') {
		d.Shape = Optional
	}
	t, err := p.name("a name")
	if err != nil {
		return nil, err
	}
	d.Pos, d.Name = t.pos, t.text
	mark := p.tok
	if err := p.dimension(d); err != nil {
		return nil, err
	}
	return d, checkShape(d, mark)
}

// dimension parses [n], <n> or <> behind a name.
func (p *parser) dimension(d *Decl) *Error {
	open := p.tok
	if open.kind != '[' && open.kind != '<' {
		return nil
	}
	if d.Shape == Optional {
		return Errorf(open.pos, "an optional value cannot be an array as well; define a type for one of them")
	}
	p.advance()
	if open.kind == '<' {
		d.Shape = VarArray
		if p.take('>') {
			return nil
		}
	} else {
		d.Shape = FixedArray
	}
	var err *Error
	if d.Size, err = p.value(); err != nil {
		return err
	}
	if open.kind == '<' {
		return p.expect('>', `">"`)
	}
	return p.expect(']', `"]"`)
}

// checkShape refuses the shapes that opaque and string do not have; mark is
// what followed the name.
func checkShape(d *Decl, mark token) *Error {
	switch {
	case d.Type.Kind == Opaque && d.Shape != FixedArray && d.Shape != VarArray:
		return Errorf(mark.pos, `expected "[" or "<" behind the name of an opaque, found %s`, mark.describe())
	case d.Type.Kind == String && d.Shape != VarArray:
		return Errorf(mark.pos, `expected "<" behind the name of a string, found %s`, mark.describe())
	}
	return nil
}

var baseTypes = map[string]Kind{
	"void": Void, "int": Int, "long": Int, "hyper": Hyper, "float": Float,
	"double": Double, "bool": Bool, "opaque": Opaque, "string": String,
}

func (p *parser) typeSpecifier() (*Type, *Error) {
	word := p.tok
	if word.kind != ident {
		return nil, p.expected("a type")
	}
	switch word.text {
	case "quadruple":
		return nil, Errorf(word.pos, "quadruple is not supported: Go has no 128-bit float (opaque[16] carries the bits)")
	case "unsigned":
		p.advance()
		if p.keyword("hyper") {
			return &Type{Pos: word.pos, Kind: Uhyper}, nil
		}
		if !p.keyword("int") && !p.keyword("long") {
			// "unsigned" alone is an unsigned int, as in C.
			_ = p.keyword("short") || p.keyword("char")
		}
		return &Type{Pos: word.pos, Kind: Uint}, nil
	case "enum", "struct", "union":
		p.advance()
		if p.tok.kind == ident && !reserved[p.tok.text] {
			t := &Type{Pos: p.tok.pos, Kind: Named, Name: p.tok.text}
			p.advance()
			return t, nil
		}
		return p.body(word)
	}
	if k, ok := baseTypes[word.text]; ok {
		p.advance()
		return &Type{Pos: word.pos, Kind: k}, nil
	}
	t, err := p.name("a type")
	if err != nil {
		return nil, err
	}
	return &Type{Pos: t.pos, Kind: Named, Name: t.text}, nil
}

// value parses a number or the name of a constant.
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
