package vfstest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/internal/base/memfs"
	"github.com/nfsbox/nfsbox/vfs"
)

// The world of a model run: few names, so that operations meet, and bounded
// files, so that trees stay small.
const (
	modelNames = 7
	modelSize  = 20_000
	// modelHistory is how many operations a failure prints.
	modelHistory = 25
	// modelObjects bounds the objects that are still talked to; at the bound
	// the oldest but the root is forgotten.
	modelObjects = 64
)

// RunModel applies steps random operations, drawn from seed, to a new FS and to
// a memfs, and compares every status, what the operations return, and in the
// end the two trees. A failure names the seed and the last operations.
func RunModel(t *testing.T, c Config, seed uint64, steps int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	m := &model{
		ctx: ctx, random: rand.New(rand.NewPCG(seed, seed)), sides: [2]vfs.FS{memfs.New(memfs.Options{}), c.New(t)},
		ids: make(map[uint64]uint64),
	}
	if err := m.run(steps); err != nil {
		t.Fatalf("seed %d: %v\nthe last operations, memfs before the file system under test:\n%s", seed, err, strings.Join(m.history, "\n"))
	}
}

// Indices of model.sides and pair.
const (
	theModel = iota
	underTest
)

// pair is one object on both sides.
type pair [2]vfs.Handle

type model struct {
	ctx     context.Context
	random  *rand.Rand
	sides   [2]vfs.FS
	objects []pair            // the first is the root; some are gone by now
	ids     map[uint64]uint64 // file ids of the model: those of the other side
	history []string
}

func (m *model) run(steps int) error {
	var root pair
	for i, f := range m.sides {
		h, _, err := f.Root(m.ctx)
		if err != nil {
			return fmt.Errorf("root: %w", err)
		}
		root[i] = h
	}
	m.objects = []pair{root}
	for step := range steps {
		op := m.draw()
		var errs [2]error
		var out [2]outcome
		for i := range m.sides {
			out[i], errs[i] = op.do(m.sides[i], i)
		}
		m.note(fmt.Sprintf("%5d %s: %s, %s", step, op.what, said(errs[theModel]), said(errs[underTest])))
		if err := m.compare(op, &out, &errs); err != nil {
			return err
		}
	}
	return m.compareTrees(root)
}

func (m *model) note(line string) {
	if len(m.history) == modelHistory {
		m.history = slices.Delete(m.history, 0, 1)
	}
	m.history = append(m.history, line)
}

func said(err error) string {
	if err == nil {
		return "OK"
	}
	if s, known := vfs.StatusOf(err); known {
		return s.Name()
	}
	return err.Error()
}

// outcome is what an operation returned, of what both sides must agree on.
type outcome struct {
	made vfs.Handle // an object that was made or found
	text string     // data, names, a target
}

// operation is a random operation, ready to be applied to either side.
type operation struct {
	what string
	// either are statuses of which each side may choose another, because the
	// RFC or the order of checks leaves it open.
	either []vfs.Status
	do     func(f vfs.FS, side int) (outcome, error)
}

// compare judges one step, and takes note of objects that it came upon.
func (m *model) compare(op *operation, out *[2]outcome, errs *[2]error) error {
	var got [2]vfs.Status
	for i, err := range errs {
		var known bool
		if got[i], known = vfs.StatusOf(err); !known {
			return fmt.Errorf("error without a status: %w", err)
		}
	}
	if got[theModel] != got[underTest] {
		if !alike(op.either, got) {
			return fmt.Errorf("status %s, the model says %s", said(errs[underTest]), said(errs[theModel]))
		}
		return nil
	}
	if out[theModel].text != out[underTest].text {
		return fmt.Errorf("result %.300q, the model says %.300q", out[underTest].text, out[theModel].text)
	}
	if errs[theModel] == nil && !out[theModel].made.IsZero() {
		return m.meet(pair{out[theModel].made, out[underTest].made})
	}
	return nil
}

// vague are statuses that servers in wide use have for an object of the wrong
// type. They are not RFC 1813's, and the tables of tests do not take them; where
// all is random it is enough that the server refuses.
var vague = []vfs.Status{vfs.ErrBadType, vfs.ErrServerFault}

// alike reports whether two different statuses are both right. What is gone
// may be missed by its handle or by its name.
func alike(either []vfs.Status, got [2]vfs.Status) bool {
	if got[theModel] == vfs.ErrStale && got[underTest] == vfs.ErrNoEnt {
		return true
	}
	return slices.Contains(either, got[theModel]) &&
		(slices.Contains(either, got[underTest]) || slices.Contains(vague, got[underTest]))
}

// meet compares an object on both sides and keeps it for later operations.
func (m *model) meet(p pair) error {
	var line [2]string
	var id [2]uint64
	for i, f := range m.sides {
		a, err := f.GetAttr(m.ctx, p[i], vfs.MaskV3)
		if err != nil {
			return fmt.Errorf("getattr of what was just found, on side %d: %w", i, err)
		}
		line[i], id[i] = describe(&a), a.FileID
	}
	if line[theModel] != line[underTest] {
		return fmt.Errorf("a %s, the model says a %s", line[underTest], line[theModel])
	}
	if other, ok := m.ids[id[theModel]]; ok && other != id[underTest] {
		return fmt.Errorf("file id %d, and was %d when the object was met before", id[underTest], other)
	}
	m.ids[id[theModel]] = id[underTest]
	if slices.Contains(m.objects, p) {
		return nil
	}
	if len(m.objects) == modelObjects {
		m.objects = slices.Delete(m.objects, 1, 2)
	}
	m.objects = append(m.objects, p)
	return nil
}

// describe is what both sides must agree on of an object. Sizes and names of
// directories are each file system's own affair.
func describe(a *vfs.Attr) string {
	if a.Type == vfs.TypeDir {
		return fmt.Sprintf("directory, mode %o", a.Mode&0o777)
	}
	if a.Type == vfs.TypeSymlink {
		return fmt.Sprintf("symlink, size %d, nlink %d", a.Size, a.Nlink)
	}
	return fmt.Sprintf("%s, mode %o, size %d, nlink %d", a.Type, a.Mode, a.Size, a.Nlink)
}
