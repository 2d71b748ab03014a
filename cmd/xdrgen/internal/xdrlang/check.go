package xdrlang

// check binds the names of s, evaluates its constants and refuses what the RFCs
// forbid.
func check(s *Spec) error {
	c := &checker{
		spec:   s,
		consts: make(map[string]*symbol),
		types:  make(map[string]*TypeDef),
		seen:   make(map[string]Pos),
	}
	c.declareAll()
	// With a name defined twice, every later message would be a guess.
	if err := c.errs.err(); err != nil {
		return err
	}
	for _, k := range s.Consts {
		c.symbolValue(c.consts[k.Name])
	}
	for _, t := range s.Types {
		c.decl(t.Decl)
	}
	for _, p := range s.Programs {
		c.program(p)
	}
	// What follows walks references, which end only if all is bound and finite.
	if err := c.errs.err(); err != nil {
		return err
	}
	c.finite()
	if err := c.errs.err(); err != nil {
		return err
	}
	for _, u := range c.unions {
		c.cases(u)
	}
	return c.errs.err()
}

// symbol is what a constant name stands for: a definition or an enumerator.
type symbol struct {
	expr *Expr // a const; its value is evaluated on first use
	enum *Enum // an enumerator: its enum and which one it is
	nth  int
	busy bool // being evaluated
	done bool
	val  Value
}

type checker struct {
	spec   *Spec
	consts map[string]*symbol
	types  map[string]*TypeDef
	seen   map[string]Pos // constants and types share one name space (RFC 4506, section 6.4)
	unions []*Union       // met so far; their cases are checked last
	errs   ErrorList
}

func (c *checker) errorf(p Pos, format string, args ...any) {
	c.errs.add(Errorf(p, format, args...))
}

func (c *checker) claim(name string, p Pos) bool {
	if first, dup := c.seen[name]; dup {
		c.errorf(p, "%s is defined already, at %d:%d", name, first.Line, first.Col)
		return false
	}
	c.seen[name] = p
	return true
}

// declareAll enters every name that the specification defines. TRUE and FALSE
// are there from the start (RFC 4506, section 4.4).
func (c *checker) declareAll() {
	c.consts["TRUE"] = &symbol{done: true, val: Value{Abs: 1}}
	c.consts["FALSE"] = &symbol{done: true}
	for _, k := range c.spec.Consts {
		if k.Name == "TRUE" || k.Name == "FALSE" {
			c.errorf(k.Pos, "%s has its meaning from XDR", k.Name)
		} else if c.claim(k.Name, k.Pos) {
			c.consts[k.Name] = &symbol{expr: &k.Expr}
		}
	}
	for _, t := range c.spec.Types {
		if c.claim(t.Name, t.Pos) {
			c.types[t.Name] = t
		}
		c.declareEnums(t.Decl.Type)
	}
	for _, p := range c.spec.Programs {
		c.claim(p.Name, p.Pos)
	}
}

// declareEnums enters the enumerators in t and in the bodies inside it: an
// enumerator's scope is the whole specification.
func (c *checker) declareEnums(t *Type) {
	switch t.Kind {
	case EnumKind:
		for i, m := range t.Enum.Members {
			if m.Name == "TRUE" || m.Name == "FALSE" {
				c.errorf(m.Pos, "%s has its meaning from XDR", m.Name)
			} else if c.claim(m.Name, m.Pos) {
				c.consts[m.Name] = &symbol{enum: t.Enum, nth: i}
			}
		}
	case StructKind:
		for _, f := range t.Fields {
			c.declareEnums(f.Type)
		}
	case UnionKind:
		c.declareEnums(t.Union.Disc.Type)
		for _, a := range t.Union.Arms {
			c.declareEnums(a.Decl.Type)
		}
	}
}

// eval gives x its value. A name that stands for nothing is reported, and ok is
// then false.
func (c *checker) eval(x *Expr) (v Value, ok bool) {
	if x.Name == "" {
		return x.Val, true
	}
	s := c.consts[x.Name]
	switch {
	case s == nil && c.types[x.Name] != nil:
		c.errorf(x.Pos, "expected a constant, %s is a type", x.Name)
	case s == nil:
		c.errorf(x.Pos, "%s is not defined", x.Name)
	case s.busy:
		c.errorf(x.Pos, "%s is defined by itself", x.Name)
	default:
		x.Val = c.symbolValue(s)
		return x.Val, true
	}
	return Value{}, false
}

func (c *checker) symbolValue(s *symbol) Value {
	if s.done {
		return s.val
	}
	s.busy = true
	if s.expr != nil {
		s.val, _ = c.eval(s.expr) // 0 if it has none, which is reported
	} else {
		s.val = c.memberValue(s)
	}
	s.busy, s.done = false, true
	return s.val
}

// memberValue evaluates an enumerator: its own expression, or one more than
// the enumerator before it. It counts from the nearest one that is known; a loop,
// for an enum may be long.
func (c *checker) memberValue(s *symbol) Value {
	members := s.enum.Members
	known := func(i int) bool { return members[i].Expr != nil || c.consts[members[i].Name].done }
	first := s.nth
	for first > 0 && !known(first) {
		first--
	}
	var base int64
	switch m := members[first]; {
	case m.Expr != nil:
		base = c.memberExpr(m)
	case first != s.nth:
		base, _ = m.Val.Int()
	}
	m := members[s.nth]
	if base += int64(s.nth - first); base != int64(int32(base)) {
		c.errorf(m.Pos, "%s = %d does not fit in an enumeration (32 bits, signed)", m.Name, base)
		base = 0
	}
	m.Val = fromInt(base)
	return m.Val
}

// memberExpr evaluates the expression of an enumerator; 0 stands for one that is
// wrong.
func (c *checker) memberExpr(m *Member) int64 {
	val, ok := c.eval(m.Expr)
	if !ok {
		return 0
	}
	v, ok := val.Int()
	if !ok || v != int64(int32(v)) {
		c.errorf(m.Expr.Pos, "%s = %v does not fit in an enumeration (32 bits, signed)", m.Name, val)
		return 0
	}
	return v
}

func fromInt(n int64) Value {
	if n < 0 {
		return Value{Neg: true, Abs: uint64(-n)}
	}
	return Value{Abs: uint64(n)}
}

// predeclared are C's names for sized integers, which rpcgen leaves to the C
// compiler. A specification that defines them itself is taken at its word.
var predeclared = map[string]Kind{
	"int32_t": Int, "uint32_t": Uint, "u_int32_t": Uint, "u_int": Uint, "u_long": Uint,
	"int64_t": Hyper, "uint64_t": Uhyper, "u_int64_t": Uhyper,
	"longlong_t": Hyper, "u_longlong_t": Uhyper, "quad_t": Hyper, "u_quad_t": Uhyper,
	"bool_t": Bool,
	// These three are 32 bits wide on the wire, as rpcgen has them.
	"short": Int, "char": Int, "u_short": Uint, "u_char": Uint,
	"int16_t": Int, "uint16_t": Uint, "int8_t": Int, "uint8_t": Uint,
}

func (c *checker) typ(t *Type) {
	switch t.Kind {
	case Named:
		t.Def = c.types[t.Name]
		if t.Def != nil {
			return
		}
		if k, ok := predeclared[t.Name]; ok {
			t.Kind = k
			return
		}
		if c.consts[t.Name] != nil {
			c.errorf(t.Pos, "expected a type, %s is a constant", t.Name)
			return
		}
		c.errorf(t.Pos, "the type %s is not defined", t.Name)
	case EnumKind:
		c.enum(t.Enum)
	case StructKind:
		names := make(map[string]Pos)
		for _, f := range t.Fields {
			c.fieldName(names, f)
			c.decl(f)
		}
	case UnionKind:
		c.union(t.Union)
	}
}

func (c *checker) fieldName(names map[string]Pos, f *Decl) {
	if first, dup := names[f.Name]; dup {
		c.errorf(f.Pos, "the field %s is there already, at %d:%d", f.Name, first.Line, first.Col)
		return
	}
	names[f.Name] = f.Pos
}

func (c *checker) enum(e *Enum) {
	values := make(map[Value]*Member)
	for _, m := range e.Members {
		v := c.symbolValue(c.consts[m.Name])
		if first := values[v]; first != nil {
			c.errorf(m.Pos, "%s has the value %v, which is %s", m.Name, v, first.Name)
			continue
		}
		values[v] = m
	}
}

func (c *checker) decl(d *Decl) {
	c.typ(d.Type)
	if d.Size == nil {
		return
	}
	n, ok := c.eval(d.Size)
	switch {
	case !ok:
	case n.Neg || n.Abs > Unbounded:
		c.errorf(d.Size.Pos, "%v is no length; lengths are 32 bits, unsigned", n)
	case d.Shape == FixedArray && n.Abs == 0:
		c.errorf(d.Size.Pos, "a fixed-length array of no elements")
	case d.Shape == FixedArray && n.Abs > MaxFixed:
		c.errorf(d.Size.Pos, "a fixed length of %v, at most %d is supported", n, MaxFixed)
	}
}

// union binds what u refers to. Its cases wait until the type that selects the
// arm can be followed to its definition.
func (c *checker) union(u *Union) {
	c.unions = append(c.unions, u)
	names := make(map[string]Pos)
	c.fieldName(names, u.Disc)
	c.decl(u.Disc)
	for _, a := range u.Arms {
		for _, x := range a.Cases {
			c.eval(x)
		}
		if a.Decl.Type.Kind != Void {
			c.fieldName(names, a.Decl)
			c.decl(a.Decl)
		}
	}
}

// cases checks the discriminant of u, and that every case is one of its values
// and there once.
func (c *checker) cases(u *Union) {
	disc := u.Disc.Type.Target()
	if u.Disc.Shape != Plain || disc.Shape != Plain || !discriminant(disc.Type) {
		c.errorf(u.Disc.Pos, "expected an int, an unsigned int, an enum or a bool to select by")
		return
	}
	values := make(map[Value]Pos)
	for _, a := range u.Arms {
		for _, x := range a.Cases {
			c.caseValue(disc.Type, x)
			if first, dup := values[x.Val]; dup {
				c.errorf(x.Pos, "the case %v is there already, at %d:%d", x.Val, first.Line, first.Col)
				continue
			}
			values[x.Val] = x.Pos
		}
	}
}

func discriminant(t *Type) bool {
	switch t.Kind {
	case Int, Uint, Bool, EnumKind:
		return true
	}
	return false
}

func (c *checker) caseValue(disc *Type, x *Expr) {
	switch disc.Kind {
	case Bool:
		if x.Val.Neg || x.Val.Abs > 1 {
			c.errorf(x.Pos, "expected TRUE or FALSE, found %v", x.Val)
		}
	case Int:
		if n, ok := x.Val.Int(); !ok || n != int64(int32(n)) {
			c.errorf(x.Pos, "%v does not fit in an int", x.Val)
		}
	case Uint:
		if x.Val.Neg || x.Val.Abs > 1<<32-1 {
			c.errorf(x.Pos, "%v does not fit in an unsigned int", x.Val)
		}
	case EnumKind:
		for _, m := range disc.Enum.Members {
			if c.symbolValue(c.consts[m.Name]) == x.Val {
				return
			}
		}
		name := x.Name
		if name == "" {
			name = x.Val.String()
		}
		c.errorf(x.Pos, "%s is no value of the enum that selects the arm", name)
	}
}
