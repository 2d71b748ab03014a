package dirfs

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// Modes of objects that are created without one.
const (
	defaultFileMode = 0o644
	defaultDirMode  = 0o755
	// exclusiveMode is the mode after an exclusive create, until the SETATTR that follows.
	exclusiveMode = 0o600
)

const (
	// maxRaces bounds the retries of a create: the name may come and go meanwhile, or the
	// object may have to be made again because it looks like one that was just removed.
	// At the bound it is ErrBusy.
	maxRaces = 16
	// tick is longer than a step of the kernel's clock for file times.
	tick = 5 * time.Millisecond
)

// Create implements vfs.FS.
//
// The verifier of an exclusive create is kept in the seconds of atime and mtime, like Linux
// nfsd's. A mode that is asked for is set exactly, whatever the umask. In a directory with a
// default access control list the list decides.
func (f *FS) Create(ctx context.Context, dir vfs.Handle, name string, how *vfs.CreateHow) (vfs.Handle, vfs.Attr, vfs.WCC, error) {
	var o vfs.Opened
	if err := f.begin(ctx); err != nil {
		return o.H, o.Attr, o.Dir, err
	}
	defer f.end()
	m := maker{f: f, name: name, how: how, flags: os.O_WRONLY}
	file, err := m.run(ctx, dir, &o)
	if file != nil {
		if cerr := file.Close(); err == nil {
			err = fail("close", cerr)
		}
	}
	return o.H, o.Attr, o.Dir, err
}

// openNew is Open for a file that may have to be created.
func (f *FS) openNew(ctx context.Context, at vfs.At, how *vfs.OpenHow, o *vfs.Opened, st *stat) (*os.File, error) {
	m := maker{f: f, name: at.Name, how: how.Create, flags: flags(how.Access)}
	file, err := m.run(ctx, at.Dir, o)
	if err != nil {
		return nil, err
	}
	*st = m.st
	if file != nil {
		return file, nil
	}
	s, d, err := f.enter(at.Dir)
	if err != nil {
		return nil, err
	}
	defer f.leave(s)
	p := place{s: s, dir: d, name: at.Name, st: m.st}
	file, *st, err = p.openFile(flags(how.Access))
	return file, err
}

// checkCreate checks the arguments.
func checkCreate(name string, how *vfs.CreateHow) error {
	if err := checkName(name); err != nil {
		return err
	}
	if how.Type == vfs.TypeReg && how.Set.Valid&vfs.MaskSize != 0 && how.Set.Size > math.MaxInt64 {
		return vfs.ErrInval
	}
	return how.Check()
}

// maker makes one object.
type maker struct {
	f     *FS
	s     *slot
	dir   *hostDir
	name  string
	how   *vfs.CreateHow
	flags int // to open a regular file with
	st    stat
}

// run makes the object, or takes the existing one if how allows. A regular file that was
// made is returned open.
func (m *maker) run(ctx context.Context, dir vfs.Handle, o *vfs.Opened) (file *os.File, err error) {
	if err := checkCreate(m.name, m.how); err != nil {
		return nil, err
	}
	if m.s, m.dir, err = m.f.enter(dir); err != nil {
		return nil, err
	}
	defer m.f.leave(m.s)
	if m.s.empty {
		return nil, vfs.ErrXDev
	}
	for range maxRaces {
		file, err = m.try(o)
		if !errors.Is(err, vfs.ErrNoEnt) && !errors.Is(err, errTwin) {
			if err == nil {
				o.H, o.Attr = m.f.handleOf(m.s, m.name, &m.st), m.st.Attr
			}
			return file, err
		}
		if err := m.wait(ctx, err); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("dirfs: create: the name comes and goes: %w", vfs.ErrBusy)
}

// errTwin says that the new object has the identity of one that was just removed.
var errTwin = errors.New("made within the same tick as what was removed")

// wait waits until the kernel's clock has moved on.
func (m *maker) wait(ctx context.Context, why error) error {
	if errors.Is(why, vfs.ErrNoEnt) {
		return nil
	}
	select {
	case <-time.After(tick):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// try makes the object or takes the existing one. ErrNoEnt says that the existing one has
// vanished meanwhile.
func (m *maker) try(o *vfs.Opened) (*os.File, error) {
	file, err := m.make()
	if err == nil {
		o.Created = true
		return file, nil
	}
	if errors.Is(err, vfs.ErrNoEnt) {
		return nil, vfs.ErrStale // the directory is gone
	}
	if m.how.Mode == vfs.CreateGuarded || !errors.Is(err, vfs.ErrExist) {
		return nil, err
	}
	return nil, m.existing()
}

// mode is the mode that was asked for.
func (m *maker) mode() uint32 {
	switch {
	case m.how.Mode == vfs.CreateExclusive:
		return exclusiveMode
	case m.how.Set.Valid&vfs.MaskMode != 0:
		return m.how.Set.Mode & 0o7777
	case m.how.Type == vfs.TypeDir:
		return defaultDirMode
	}
	return defaultFileMode
}

// make makes the object with its attributes. If that fails, it removes the object again.
func (m *maker) make() (file *os.File, err error) {
	switch m.how.Type {
	case vfs.TypeReg:
		file, err = m.dir.open(m.name, m.flags|os.O_CREATE|os.O_EXCL, m.mode())
	case vfs.TypeDir:
		err = m.dir.mkdir(m.name, m.mode())
	case vfs.TypeSymlink:
		err = m.dir.symlink(m.how.Target, m.name)
	default:
		err = m.dir.mknod(m.name, m.how.Type, m.mode(), m.how.Rdev)
	}
	if err != nil {
		return nil, fail("create", err)
	}
	if err = m.finish(file); err != nil {
		if file != nil {
			err = errors.Join(err, fail("close", file.Close()))
		}
		return nil, err
	}
	return file, nil
}

// finish sets the new object's attributes.
func (m *maker) finish(file *os.File) error {
	err := fail("stat", m.stat(file))
	if err == nil && m.st.Type != m.how.Type {
		return vfs.ErrStale // another program has replaced it
	}
	if err != nil {
		return err
	}
	if id := m.st.id(); id.born != 0 && m.f.gone.has(id) {
		m.undo()
		return errTwin
	}
	dressed, err := m.dress(file)
	if err == nil && dressed {
		err = fail("stat", m.stat(file))
	}
	if err != nil {
		m.undo()
	}
	return err
}

func (m *maker) stat(file *os.File) error {
	if file != nil {
		return statFile(file, &m.st)
	}
	return m.dir.stat(m.name, &m.st)
}

// dress sets those attributes that the call which made the object could not. It reports whether there were any.
func (m *maker) dress(file *os.File) (dressed bool, err error) {
	set := m.how.Set
	if m.how.Mode == vfs.CreateExclusive {
		asec, msec := exclusiveTimes(m.how.Verf)
		set = vfs.SetAttr{Valid: vfs.MaskAtime | vfs.MaskMtime, Atime: time.Unix(asec, 0), Mtime: time.Unix(msec, 0)}
	}
	if file != nil && set.Valid&vfs.MaskSize != 0 && set.Size != 0 {
		if err := fail("truncate", file.Truncate(int64(set.Size))); err != nil {
			return true, err
		}
		dressed = true
	}
	set.Mode = m.mode()
	if m.how.Type == vfs.TypeDir {
		set.Mode |= m.st.Mode & 0o2000 // inherited from its directory
	}
	set.Valid &= vfs.MaskUID | vfs.MaskGID | vfs.MaskAtime | vfs.MaskMtime
	if m.how.Type != vfs.TypeSymlink && (m.st.Mode != set.Mode || set.Valid&(vfs.MaskUID|vfs.MaskGID) != 0) && !m.dir.decides() {
		set.Valid |= vfs.MaskMode
	}
	if set.Valid == 0 {
		return dressed, nil
	}
	x, err := m.dir.object(m.name, &m.st)
	if err != nil {
		return true, fail("open", err)
	}
	defer x.close()
	return true, x.set(&set, &m.st)
}

// undo removes the new object, if its name still leads to it. If that fails, it stays.
func (m *maker) undo() {
	var now stat
	if m.dir.stat(m.name, &now) == nil && now.id() == m.st.id() {
		_ = m.dir.unlink(m.name, m.how.Type == vfs.TypeDir) // the first error is the one to report
	}
}

// existing takes the file that has the name.
func (m *maker) existing() error {
	if err := fail("stat", m.dir.stat(m.name, &m.st)); err != nil {
		return err
	}
	if m.st.Type != vfs.TypeReg || m.how.Mode == vfs.CreateExclusive && !m.repeated() {
		return vfs.ErrExist
	}
	if m.how.Mode != vfs.CreateUnchecked || m.how.Set.Valid&vfs.MaskSize == 0 {
		return nil
	}
	p := place{s: m.s, dir: m.dir, name: m.name, st: m.st}
	if err := m.f.setSize(&p, m.how.Set.Size); err != nil {
		return err
	}
	return fail("stat", m.dir.stat(m.name, &m.st))
}

// repeated reports whether an exclusive create with the same verifier made the existing file.
func (m *maker) repeated() bool {
	asec, msec := exclusiveTimes(m.how.Verf)
	return m.st.Size == 0 && m.st.Atime.Equal(time.Unix(asec, 0)) && m.st.Mtime.Equal(time.Unix(msec, 0))
}

// exclusiveTimes are the atime and mtime that stand for a verifier. The highest bits are
// dropped, as some file systems have no times before 1970.
func exclusiveTimes(verf vfs.Verifier) (asec, msec int64) {
	const mask = 0x7fffffff
	return int64(binary.BigEndian.Uint32(verf[:4]) & mask), int64(binary.BigEndian.Uint32(verf[4:]) & mask)
}
