package emit

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/nfsbox/nfsbox/cmd/xdrgen/internal/xdrlang"
)

// program is one version of an RPC program.
type program struct {
	name    string // in Go
	spec    string
	doc     string
	program *xdrlang.Program
	version xdrlang.Value
	procs   []*proc // by ascending number
}

// proc is one procedure; args and result are nil for void.
type proc struct {
	name         string // in Go
	spec         string
	doc          string
	number       xdrlang.Value
	args, result *typ
	repeatable   bool
}

// programs lowers the programs. What a procedure takes or gives must have
// methods of its own, so that a bare bool, or several arguments, become a
// struct.
func (m *model) programs(opt Options) {
	count := make(map[string]int)
	for _, p := range m.spec.Programs {
		m.fail(m.names.claim(goName(p.Name), p.Name, p.Pos))
		for _, v := range p.Versions {
			for _, q := range v.Procs {
				count[q.Name]++
			}
		}
	}
	for _, name := range opt.Once {
		if count[name] == 0 {
			m.fail(xdrlang.Errorf(m.start(), "-once %s: there is no such procedure", name))
		}
	}
	for _, p := range m.spec.Programs {
		for _, v := range p.Versions {
			prog := m.version(p, v, opt, count)
			m.progs = append(m.progs, prog)
		}
	}
}

// start is the place for errors that have none in the text.
func (m *model) start() xdrlang.Pos { return xdrlang.Pos{File: m.spec.File, Line: 1, Col: 1} }

// version lowers one version; count says how often each procedure's name is
// there, for versions of one program may name their procedures alike.
func (m *model) version(p *xdrlang.Program, v *xdrlang.Version, opt Options, count map[string]int) *program {
	prog := &program{name: goName(v.Name), spec: v.Name, doc: v.Doc, program: p, version: v.Number.Val}
	m.fail(m.names.claim(prog.name, v.Name, v.Pos))
	for _, q := range v.Procs {
		name := goName(q.Name)
		if count[q.Name] > 1 {
			name = prog.name + "_" + name
		}
		m.fail(m.names.claim(name, q.Name, q.Pos))
		out := &proc{
			name: name, spec: q.Name, doc: q.Doc, number: q.Number.Val,
			repeatable: !slices.Contains(opt.Once, q.Name),
		}
		out.args = m.operand(name+"args", " takes", q, q.Args)
		if q.Result.Type.Kind != xdrlang.Void {
			out.result = m.operand(name+"res", " gives", q, []*xdrlang.Decl{q.Result})
		}
		prog.procs = append(prog.procs, out)
	}
	slices.SortFunc(prog.procs, func(a, b *proc) int { return cmp.Compare(a.number.Abs, b.number.Abs) })
	return prog
}

// operand is the type of what a procedure takes or gives: the one that the
// specification has, if that has methods, else a struct made for the purpose, of
// which what says whether it is taken or given.
func (m *model) operand(name, what string, q *xdrlang.Proc, decls []*xdrlang.Decl) *typ {
	if len(decls) == 0 {
		return nil
	}
	if d := decls[0]; len(decls) == 1 && d.Shape == xdrlang.Plain && d.Type.Kind == xdrlang.Named {
		if t := m.typeDef(d.Type.Def); t.methods() {
			return t
		}
	}
	var fields []*xdrlang.Decl
	for i, d := range decls {
		f := *d
		f.Name = "value"
		if len(decls) > 1 {
			f.Name = fmt.Sprintf("arg%d", i+1)
		}
		fields = append(fields, &f)
	}
	t := m.typeDef(&xdrlang.TypeDef{
		Pos: q.Pos, Name: name, Decl: &xdrlang.Decl{
			Pos: q.Pos, Name: name, Type: &xdrlang.Type{Pos: q.Pos, Kind: xdrlang.StructKind, Fields: fields},
		},
	})
	t.def.made = "what " + q.Name + what
	return t
}
