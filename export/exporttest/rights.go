package exporttest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/nfsbox/nfsbox/export"
	"github.com/nfsbox/nfsbox/vfs"
)

// Config says what is tested.
type Config struct {
	// New makes an empty file system and exports it by the rule, whose Match is
	// "*". It has t clean up when it ends.
	New func(t *testing.T, rule export.Rule) Place
	// Override is true where files are opened for every operation, as NFSv3 does.
	// Then an owner may read and write whatever its file's mode says, and a caller
	// that may execute may read (RFC 1813, section 4.4).
	Override bool
	// Asks is true where ACCESS is asked before a file is read: Override is then for
	// writing alone.
	Asks bool
	// Every tries only one combination in so many, where each takes long. A prime,
	// such as 7, spreads them over all kinds. 0 and 1 try all: some 20,000.
	Every int
}

// Place is an export from both sides.
type Place struct {
	// Below is the file system itself, as root: the test makes objects in it and
	// gives them their owners.
	Below vfs.FS
	// As is the export as a caller at the client sees it.
	As func(*vfs.Caller) vfs.FS
	// Dir is the directory of this host that Below serves, for Descriptors.
	Dir string
}

// callers try every operation. For an object of 1000:2000 they are root, the owner, a
// member of the group, and another user. For one of root, the third is a member of the
// group. For one of nobody, every squashed caller is the owner.
var callers = []vfs.Caller{
	{UID: 0, GID: 0},
	{UID: 1000, GID: 1000},
	{UID: 1001, GID: 1001, Groups: []uint32{2000, 0}},
	{UID: 1002, GID: 1002, Groups: []uint32{1002}},
}

// owners have the objects.
var owners = [][2]uint32{{1000, 2000}, {0, 0}, {export.Nobody, export.Nobody}}

// modes are those with a single bit or class, and the usual ones.
var modes = []uint32{
	0, 0o400, 0o200, 0o100, 0o040, 0o020, 0o010, 0o004, 0o002, 0o001,
	0o300, 0o030, 0o003, 0o700, 0o070, 0o007, 0o077, 0o644, 0o755, 0o777,
}

// Rights lets every caller try every operation on objects of every owner and mode, by
// every kind of rule, and compares the results with the model.
func Rights(t *testing.T, c Config) {
	for _, squash := range []export.Squash{export.SquashNone, export.SquashRoot, export.SquashAll} {
		for _, ro := range []bool{false, true} {
			t.Run(fmt.Sprintf("squash %v, read-only %t", squash, ro), func(t *testing.T) {
				place := c.New(t, export.Rule{Match: "*", Squash: squash, ReadOnly: ro})
				m := &matrix{T: t, c: c, place: place, squash: squash, readOnly: ro}
				m.run()
			})
		}
	}
}

// matrix is the part of the test that one rule decides.
type matrix struct {
	*testing.T
	c        Config
	place    Place
	squash   export.Squash
	readOnly bool

	root  vfs.Handle // of the file system below
	made  int        // objects
	tried int        // combinations, with those left out
	other string     // the name of a file that every caller may link to
}

func (m *matrix) run() {
	m.begin()
	m.other = m.make(m.root, object{mode: 0o666})
	for _, owner := range owners {
		for _, mode := range modes {
			o := object{uid: owner[0], gid: owner[1], mode: mode}
			for i := range callers {
				m.tryAll(&callers[i], o)
			}
		}
	}
}

func (m *matrix) begin() {
	var err error
	if m.root, _, err = m.place.Below.Root(m.Context()); err != nil {
		m.Fatal(err)
	}
	m.set(m.root, object{mode: 0o755})
}

// tryAll tries every operation as one caller, each on an object of its own.
func (m *matrix) tryAll(who *vfs.Caller, o object) {
	fs := m.place.As(who)
	is := squashed(*who, m.squash)
	for i := range operations {
		if !m.turn() {
			continue
		}
		op := &operations[i]
		o.dir = op.dir
		at := m.find(fs, m.prepare(o))
		want := m.verdict(is, op, o)
		if got := op.do(m.Context(), fs, at); !errors.Is(got, want) {
			m.Errorf("uid %d, groups %d %v, an object of %d:%d with mode %04o: %s is %v, want %v",
				who.UID, who.GID, who.Groups, o.uid, o.gid, o.mode, op.name, got, want)
		}
	}
	const all = vfs.AccessRead | vfs.AccessLookup | vfs.AccessModify | vfs.AccessExtend | vfs.AccessDelete | vfs.AccessExecute
	for _, o.dir = range []bool{false, true} {
		if !m.turn() {
			continue
		}
		at := m.find(fs, m.prepare(o))
		want := m.grants(is, o)
		if got, _, err := fs.Access(m.Context(), at.object, all); err != nil || got != want {
			m.Errorf("uid %d, groups %d %v, an object of %d:%d with mode %04o, directory %t: access is %#x, %v, want %#x",
				who.UID, who.GID, who.Groups, o.uid, o.gid, o.mode, o.dir, got, err, want)
		}
	}
}

func (m *matrix) turn() bool {
	m.tried++
	return m.tried%max(m.c.Every, 1) == 0
}

// prepare makes an object and returns its name in the root. If it is a directory, it
// holds a file.
func (m *matrix) prepare(o object) string {
	name := m.make(m.root, o)
	if o.dir {
		h, _, _, err := m.place.Below.Lookup(m.Context(), m.root, name)
		if err != nil {
			m.Fatal(err)
		}
		if _, _, _, err := m.place.Below.Create(m.Context(), h, "file", &vfs.CreateHow{Type: vfs.TypeReg}); err != nil {
			m.Fatal(err)
		}
	}
	return name
}

func (m *matrix) make(dir vfs.Handle, o object) string {
	m.made++
	name := fmt.Sprint("object ", m.made)
	how := &vfs.CreateHow{Type: vfs.TypeReg}
	if o.dir {
		how.Type = vfs.TypeDir
	}
	h, _, _, err := m.place.Below.Create(m.Context(), dir, name, how)
	if err != nil {
		m.Fatal(err)
	}
	m.set(h, o)
	return name
}

// set gives an object its owner and then its mode, since a change of owner may change
// the mode.
func (m *matrix) set(h vfs.Handle, o object) {
	for _, set := range []vfs.SetAttr{
		{Valid: vfs.MaskUID | vfs.MaskGID, UID: o.uid, GID: o.gid}, {Valid: vfs.MaskMode, Mode: o.mode},
	} {
		if _, err := m.place.Below.SetAttr(m.Context(), h, &set, nil); err != nil {
			m.Fatal(err)
		}
	}
}

// find looks an object up as a client does, so its handles are sealed.
func (m *matrix) find(fs vfs.FS, name string) (at target) {
	root, _, err := fs.Root(m.Context())
	if err != nil {
		m.Fatal(err)
	}
	if at.object, _, _, err = fs.Lookup(m.Context(), root, name); err != nil {
		m.Fatal(err)
	}
	if m.other == "" {
		return at
	}
	if at.other, _, _, err = fs.Lookup(m.Context(), root, m.other); err != nil {
		m.Fatal(err)
	}
	return at
}
