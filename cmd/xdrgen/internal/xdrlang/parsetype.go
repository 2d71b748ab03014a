package xdrlang

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
		p.tail = &m.Doc
		if p.tok.kind == ',' && p.tok.tail == "" {
			p.advance()
			p.comment()
		} else {
			p.comment()
			if p.take('}') {
				return e, nil
			}
			if err := p.expect(',', `"," or "}"`); err != nil {
				return nil, err
			}
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
		p.tail = &d.Doc
		p.comment()
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
	if err := p.expect(';', `";"`); err != nil {
		return nil, err
	}
	p.tail = &arm.Decl.Doc
	p.comment()
	return arm, nil
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
