package emit

import (
	"strings"

	"github.com/nfsbox/nfsbox/cmd/xdrgen/internal/xdrlang"
)

// structDef follows names to the definition of a struct; nil if there is none.
func structDef(t *xdrlang.Type) *xdrlang.TypeDef {
	for t.Kind == xdrlang.Named {
		def := t.Def
		if def.Decl.Shape != xdrlang.Plain {
			return nil
		}
		if t = def.Decl.Type; t.Kind == xdrlang.StructKind {
			return def
		}
	}
	return nil
}

// optionalOf is the struct that d points to, be it directly or through a type
// defined as a pointer; nil if d is no pointer to a struct.
func optionalOf(d *xdrlang.Decl) *xdrlang.TypeDef {
	if d.Shape == xdrlang.Plain {
		d = d.Type.Target()
	}
	if d.Shape != xdrlang.Optional {
		return nil
	}
	return structDef(d.Type)
}

// findNodes finds the structs that are nodes of linked lists: the last field,
// and only that one, points to the struct itself, and every reference to the
// struct is through a pointer. One that is held by value brings its own tail
// along and is no node.
func findNodes(spec *xdrlang.Spec) map[*xdrlang.TypeDef]bool {
	nodes := make(map[*xdrlang.TypeDef]bool)
	for _, t := range spec.Types {
		if t.Decl.Shape != xdrlang.Plain || t.Decl.Type.Kind != xdrlang.StructKind {
			continue
		}
		fields := t.Decl.Type.Fields
		self := 0
		for _, f := range fields {
			if optionalOf(f) == t {
				self++
			}
		}
		last := len(fields) - 1
		nodes[t] = self == 1 && last > 0 && optionalOf(fields[last]) == t
	}
	for _, t := range spec.Types {
		heldByValue(t.Decl, nodes)
	}
	for _, p := range spec.Programs {
		for _, v := range p.Versions {
			for _, q := range v.Procs {
				heldByValue(q.Result, nodes)
				for _, a := range q.Args {
					heldByValue(a, nodes)
				}
			}
		}
	}
	return nodes
}

// heldByValue strikes from nodes what d and the bodies inside it hold by value.
func heldByValue(d *xdrlang.Decl, nodes map[*xdrlang.TypeDef]bool) {
	switch d.Type.Kind {
	case xdrlang.Named:
		if d.Shape != xdrlang.Optional {
			delete(nodes, structDef(d.Type))
		}
	case xdrlang.StructKind:
		for _, f := range d.Type.Fields {
			heldByValue(f, nodes)
		}
	case xdrlang.UnionKind:
		for _, a := range d.Type.Union.Arms {
			heldByValue(a.Decl, nodes)
		}
	}
}

func (t *typ) refs() []*def {
	if t.kind == kEnum {
		return nil
	}
	if t.def != nil {
		return []*def{t.def}
	}
	if t.elem != nil {
		return t.elem.refs()
	}
	return nil
}

func (d *def) next() []*def {
	var out []*def
	for _, f := range d.fields {
		out = append(out, f.typ.refs()...)
	}
	if d.typ.elem != nil {
		out = append(out, d.typ.elem.refs()...)
	}
	return out
}

// markRecursive marks every definition that leads to itself: Tarjan's
// algorithm for strongly connected components.
func (m *model) markRecursive() {
	w := &tarjan{index: make(map[*def]int), low: make(map[*def]int), on: make(map[*def]bool)}
	for _, d := range m.defs {
		if !d.alias && w.index[d] == 0 {
			w.visit(d)
		}
	}
}

type tarjan struct {
	index, low map[*def]int
	on         map[*def]bool
	stack      []*def
}

func (w *tarjan) visit(d *def) {
	w.index[d] = len(w.index) + 1
	w.low[d] = w.index[d]
	w.stack = append(w.stack, d)
	w.on[d] = true
	for _, to := range d.next() {
		if to == d {
			d.recursive = true
		}
		if w.index[to] == 0 {
			w.visit(to)
			w.low[d] = min(w.low[d], w.low[to])
		} else if w.on[to] {
			w.low[d] = min(w.low[d], w.index[to])
		}
	}
	if w.low[d] != w.index[d] {
		return
	}
	for i := len(w.stack) - 1; ; i-- {
		top := w.stack[i]
		w.on[top] = false
		if top != d {
			top.recursive, d.recursive = true, true
			continue
		}
		w.stack = w.stack[:i]
		return
	}
}

// markBulk finds the opaques named by bulk ("READ3resok.data") and marks every
// definition that holds one by value.
func (m *model) markBulk(bulk []string) {
	for _, name := range bulk {
		if !m.markBulkField(name) {
			m.fail(xdrlang.Errorf(m.start(),
				"-bulk %s: there is no struct or union with a variable-length opaque of that name", name))
		}
	}
	for changed := true; changed; {
		changed = false
		for _, d := range m.defs {
			if d.bulk < 0 && !d.recursive && m.inheritBulk(d) {
				changed = true
			}
		}
	}
}

func (m *model) markBulkField(name string) bool {
	typeName, _, _ := strings.Cut(name, ".")
	for _, d := range m.defs {
		if d.alias || d.spec != typeName || d.node || d.recursive {
			continue
		}
		for i, f := range d.fields {
			if f.spec == name && f.typ.kind == kBytes && !f.typ.methods() {
				m.lastField(d, i)
				d.bulk = i
				return true
			}
		}
	}
	return false
}

// inheritBulk marks d if one of its fields has bulk. Two of them in one struct
// are an error, for there is one stretch of data in a message; the arms of a
// union are never there together, but only one may have it all the same.
func (m *model) inheritBulk(d *def) bool {
	for i, f := range d.fields {
		if !f.typ.hasBulk() {
			continue
		}
		if d.bulk >= 0 {
			m.fail(xdrlang.Errorf(f.pos, "%s holds bulk data twice", d.spec))
			return false
		}
		m.lastField(d, i)
		d.bulk = i
	}
	return d.bulk >= 0
}

// lastField refuses bulk data that something follows: the tail of a message is
// padding and no more, which is all that READ and WRITE need.
func (m *model) lastField(d *def, i int) {
	if d.typ.kind == kStruct && i != len(d.fields)-1 {
		m.fail(xdrlang.Errorf(d.fields[i].pos, "%s holds bulk data and is not the last field", d.fields[i].spec))
	}
}

func (t *typ) hasBulk() bool {
	return (t.kind == kStruct || t.kind == kUnion) && t.def.bulk >= 0
}

func (d *def) methodNames() []string {
	names := []string{"AppendXDR", "DecodeXDR"}
	if d.node {
		names = append(names, "Next", "AppendNext")
	}
	if d.bulk >= 0 {
		names = append(names, "AppendHead", "Bulk", "AppendTail", "DecodeHead", "DecodeTail")
	}
	return names
}

// checkFields refuses fields that would share a Go name with each other or with
// a method.
func (m *model) checkFields(d *def) {
	s := make(scope)
	for _, name := range d.methodNames() {
		s[name] = owner{}
	}
	for _, f := range d.fields {
		m.fail(s.claim(f.name, f.spec, f.pos))
	}
}
