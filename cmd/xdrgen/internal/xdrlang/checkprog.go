package xdrlang

// program checks numbers and names of a program: each may be there once.
func (c *checker) program(p *Program) {
	c.number(p.Number, "a program")
	names, numbers := make(map[string]Pos), make(map[Value]Pos)
	for _, v := range p.Versions {
		c.number(v.Number, "a version")
		c.unique(names, v.Name, v.Pos, "version")
		c.uniqueNumber(numbers, v.Number, "version")
		c.version(v)
	}
}

func (c *checker) version(v *Version) {
	names, numbers := make(map[string]Pos), make(map[Value]Pos)
	for _, p := range v.Procs {
		c.number(p.Number, "a procedure")
		c.unique(names, p.Name, p.Pos, "procedure")
		c.uniqueNumber(numbers, p.Number, "procedure")
		c.decl(p.Result)
		for _, a := range p.Args {
			c.decl(a)
		}
	}
}

func (c *checker) number(x *Expr, what string) {
	if n, ok := c.eval(x); ok && (n.Neg || n.Abs > 1<<32-1) {
		c.errorf(x.Pos, "%v is no number of %s; they are 32 bits, unsigned", n, what)
	}
}

func (c *checker) unique(seen map[string]Pos, name string, p Pos, what string) {
	if first, dup := seen[name]; dup {
		c.errorf(p, "the %s %s is there already, at %d:%d", what, name, first.Line, first.Col)
		return
	}
	seen[name] = p
}

func (c *checker) uniqueNumber(seen map[Value]Pos, x *Expr, what string) {
	if first, dup := seen[x.Val]; dup {
		c.errorf(x.Pos, "the %s number %v is taken already, at %d:%d", what, x.Val, first.Line, first.Col)
		return
	}
	seen[x.Val] = x.Pos
}

// finite refuses types that hold themselves by value, which would be of
// infinite size, and types of more than MaxFixed bytes.
func (c *checker) finite() {
	c.renames()
	if len(c.errs) > 0 {
		return
	}
	f := finder{c: c, state: make(map[*TypeDef]int), size: make(map[*TypeDef]int64)}
	for _, t := range c.spec.Types {
		f.def(t)
	}
}

// renames refuses type definitions that lead to nothing but themselves, be it
// through pointers and arrays: typedef a *b; typedef b *a.
func (c *checker) renames() {
	done := make(map[*TypeDef]bool)
	for _, t := range c.spec.Types {
		path := make(map[*TypeDef]bool)
		for at := t; at != nil && !done[at]; at = at.Decl.Type.Def {
			if path[at] {
				c.errorf(at.Pos, "%s is defined by itself", at.Name)
				break
			}
			path[at] = true
		}
		for at := range path {
			done[at] = true
		}
	}
}

// finder walks the references by value, depth first, and measures what it
// finds. The walk is as deep as the longest chain of definitions, which MaxSource
// bounds.
type finder struct {
	c     *checker
	state map[*TypeDef]int // 1 while on the path, 2 when done
	size  map[*TypeDef]int64
}

// def measures a definition: the bytes that a value takes at least, all arms of
// a union together, for so it is in memory.
func (f *finder) def(t *TypeDef) int64 {
	switch f.state[t] {
	case 1:
		f.c.errorf(t.Pos, "%s holds itself by value; make one of the references optional (*name)", t.Name)
		return 0
	case 2:
		return f.size[t]
	}
	f.state[t] = 1
	n := f.decl(t.Decl)
	if n > MaxFixed {
		f.c.errorf(t.Pos, "%s takes more than %d bytes, which no type may", t.Name, MaxFixed)
		n = 0 // reported once, not for every holder
	}
	f.state[t], f.size[t] = 2, n
	return n
}

func (f *finder) decl(d *Decl) int64 {
	if d.Shape == Optional || d.Shape == VarArray {
		// Behind a pointer; but a body in place may still hold by value what it
		// must not.
		if d.Type.Kind != Named {
			f.typ(d.Type)
		}
		return 4
	}
	n := f.typ(d.Type)
	if d.Shape == FixedArray {
		n *= int64(d.Bound())
	}
	return min(n, MaxFixed+1)
}

func (f *finder) typ(t *Type) int64 {
	var n int64
	switch t.Kind {
	case Void:
		return 0
	case Opaque:
		return 1
	case Hyper, Uhyper, Double:
		return 8
	case Named:
		return f.def(t.Def)
	case StructKind:
		for _, d := range t.Fields {
			n += f.decl(d)
		}
		return n
	case UnionKind:
		for _, a := range t.Union.Arms {
			n += f.decl(a.Decl)
		}
		return n + 4
	}
	return 4
}
