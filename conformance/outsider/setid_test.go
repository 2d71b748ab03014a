//go:build linux

package outsider

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

const nfsMKNOD = 11

// sattr sets the mode, and the size unless that is negative (RFC 1813, sattr3).
func sattr(args []byte, mode uint32, size int) []byte {
	args = u32(args, 1, mode, 0, 0)
	if size < 0 {
		args = u32(args, 0)
	} else {
		args = u64(u32(args, 1), uint64(size))
	}
	return u32(args, 0, 0)
}

// sized sets the size alone.
func sized(file []byte, size uint64) []byte {
	return u32(u64(u32(opaque(nil, file), 0, 0, 0, 1), size), 0, 0, 0)
}

// bits are a file's mode on this host, as chmod(2) takes it.
func (b *box) bits(path string) uint32 {
	b.Helper()
	var st syscall.Stat_t
	b.no(syscall.Lstat(path, &st))
	return st.Mode & 0o7777
}

// belongs makes a directory or, with a text, a file of that user and mode.
func (b *box) belongs(path, text string, uid int, mode uint32) {
	b.Helper()
	if text == "" {
		b.no(os.Mkdir(path, 0o700))
	} else {
		b.write(path, text)
	}
	b.no(os.Chown(path, uid, uid))
	b.no(syscall.Chmod(path, mode)) // after chown(2), which takes bits away
}

// capFSETID lets a process write to a program that runs as its owner, which stays one
// (capabilities(7)).
const capFSETID = 4

// serveAs serves dir as a user of this host, with these capabilities.
func (b *box) serveAs(uid uint32, dir string, capabilities ...uintptr) *server {
	b.Helper()
	state := b.path(".state-of-user")
	b.belongs(state, "", int(uid), 0o700)
	cmd := exec.Command(b.bin, "serve", dir, "--listen=127.0.0.1:0", "--state-dir", state, "--localio=off")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}, AmbientCaps: capabilities}
	return b.start(cmd, state)
}

// alices is a server that alice runs, over a directory of hers of that mode.
func alices(t *testing.T, mode uint32) (b *box, s *server, dir string) {
	t.Helper()
	root(t, "to be two users")
	b = newBox(t)
	dir = b.path("srv")
	b.belongs(dir, "", alice, mode)
	return b, b.serveAs(alice, dir), dir
}

// userOfAlices is a user that asks alice's server for files.
type userOfAlices struct {
	name string
	uid  uint32
}

func usersOfAlices() []userOfAlices {
	return []userOfAlices{{"another user", bob}, {"root", 0}, {"its own user", alice}}
}

// gets is the mode of a file that the user asks to have this mode. Only alice gets a
// program that runs as its owner, or its group: every file of the server is hers.
func (u userOfAlices) gets(mode uint32) uint32 {
	if u.uid == alice {
		return mode
	}
	return mode &^ 0o6000
}

// TestUserMakesNoProgramOfServers: a server that one user runs makes everything as that
// user. Others ask it for programs that would run as that user, and get plain ones.
func TestUserMakesNoProgramOfServers(t *testing.T) {
	b, s, dir := alices(t, 0o1777)
	for _, x := range usersOfAlices() {
		p := s.as(x.uid, "127.0.0.1")
		top := p.root(b)
		in := func(name string) []byte { return dirop(top, x.name+" "+name) }
		for name, call := range map[string]struct {
			proc uint32
			args []byte
		}{
			"guarded":   {nfsCREATE, sattr(u32(in("guarded"), 1), 0o6777, -1)},
			"with size": {nfsCREATE, sattr(u32(in("with size"), 0), 0o6777, 100)},
			"directory": {nfsMKDIR, sattr(in("directory"), 0o6777, -1)},
			"fifo":      {nfsMKNOD, sattr(u32(in("fifo"), 7), 0o6777, -1)},
			"socket":    {nfsMKNOD, sattr(u32(in("socket"), 6), 0o6777, -1)},
		} {
			if status, _, err := p.nfs(call.proc, call.args); err != nil || status != statusOK {
				t.Fatalf("%s of %s: status %d, %v", name, x.name, status, err)
			}
			want := x.gets(0o6777)
			if got := b.bits(filepath.Join(dir, x.name+" "+name)); got != want {
				t.Errorf("%s of %s has mode %#o, want %#o", name, x.name, got, want)
			}
		}
	}
}

// TestExclusiveCreate: a server that one user runs makes a new file for every user, with
// the mode that is asked for. Users ask as the kernel's client does: by an exclusive
// CREATE and the SETATTR after it, or, where the server refuses that, by a guarded
// CREATE (RFC 1813, section 3.3.8). By neither does another user get a program that runs
// as the server's user.
func TestExclusiveCreate(t *testing.T) {
	b, s, dir := alices(t, 0o1777)
	for _, x := range usersOfAlices() {
		p := s.as(x.uid, "127.0.0.1")
		where := dirop(p.root(b), x.name)
		status, r, err := p.nfs(nfsCREATE, append(u32(where, 2), "verifier"...))
		b.no(err)
		switch status {
		case statusOK:
			_ = r.u32() // a handle follows
			set := u32(opaque(nil, r.opaque()), 1, 0o6755, 0, 0, 0, 1, 1, 0)
			if status, _, err := p.nfs(nfsSETATTR, set); err != nil || status != statusOK {
				t.Errorf("%s: SETATTR after an exclusive CREATE: status %d, %v", x.name, status, err)
			}
		case statusNOTSUPP:
			if _, err := os.Lstat(filepath.Join(dir, x.name)); err == nil {
				t.Errorf("%s: an exclusive CREATE is refused, and the file is there", x.name)
			}
			if status, _, err := p.nfs(nfsCREATE, sattr(u32(where, 1), 0o6755, -1)); err != nil || status != statusOK {
				t.Errorf("%s: a guarded CREATE after an exclusive one: status %d, %v", x.name, status, err)
			}
		default:
			t.Errorf("%s: exclusive CREATE: status %d", x.name, status)
		}
		want := x.gets(0o6755)
		if got := b.bits(filepath.Join(dir, x.name)); got != want {
			t.Errorf("%s: the file has mode %#o, want %#o", x.name, got, want)
		}
	}
}

// TestUserDirectoriesKeepGroup: a directory hands on its group to those that other users
// make in it, and keeps that when root changes its mode.
func TestUserDirectoriesKeepGroup(t *testing.T) {
	b, s, dir := alices(t, 0o2777)
	p := s.as(bob, "127.0.0.1")
	if status, _, err := p.nfs(nfsMKDIR, sattr(dirop(p.root(b), "d"), 0o2777, -1)); err != nil || status != statusOK {
		t.Fatalf("MKDIR: status %d, %v", status, err)
	}
	if got := b.bits(filepath.Join(dir, "d")); got != 0o2777 {
		t.Errorf("the directory has mode %#o, want 02777", got)
	}
	r := s.as(0, "127.0.0.1")
	d, _, err := r.lookup(r.root(b), "d")
	b.no(err)
	if status, _, err := r.nfs(nfsSETATTR, u32(sattr(opaque(nil, d), 0o2755, -1), 0)); err != nil || status != statusOK {
		t.Fatalf("SETATTR: status %d, %v", status, err)
	}
	if got := b.bits(filepath.Join(dir, "d")); got != 0o2755 {
		t.Errorf("the directory has mode %#o after SETATTR, want 02755", got)
	}
}

// TestUserWritesNoProgram: a program that runs as its owner, and that others may write,
// no longer does so when another user has written to it, or cut it. It does not matter
// which user runs the server.
func TestUserWritesNoProgram(t *testing.T) {
	root(t, "to be two users")
	for _, server := range []struct {
		name         string
		uid          uint32
		capabilities []uintptr
	}{{"root's", 0, nil}, {"the owner's", alice, nil}, {"one that may keep the bits", alice, []uintptr{capFSETID}}} {
		t.Run(server.name, func(t *testing.T) {
			b := newBox(t)
			dir := b.path("srv")
			b.belongs(dir, "", alice, 0o777)
			for _, file := range []string{"written", "cut", "made again"} {
				b.belongs(filepath.Join(dir, file), "text", alice, 0o6777)
			}
			s := b.serveAs(server.uid, dir, server.capabilities...)
			p := s.as(bob, "127.0.0.1")
			top := p.root(b)
			handle := func(name string) []byte {
				h, status, err := p.lookup(top, name)
				if err != nil || status != statusOK {
					t.Fatalf("LOOKUP: status %d, %v", status, err)
				}
				return h
			}
			if status, err := p.write(handle("written"), 0, unstable, []byte("x")); err != nil || status != statusOK {
				t.Errorf("WRITE: status %d, %v", status, err)
			}
			if status, _, err := p.nfs(nfsSETATTR, sized(handle("cut"), 1)); err != nil || status != statusOK {
				t.Errorf("SETATTR: status %d, %v", status, err)
			}
			if status, _, err := p.nfs(nfsCREATE, sattr(u32(dirop(top, "made again"), 0), 0o6777, 0)); err != nil || status != statusOK {
				t.Errorf("CREATE: status %d, %v", status, err)
			}
			for _, file := range []string{"written", "cut", "made again"} {
				if got := b.bits(filepath.Join(dir, file)); got != 0o777 {
					t.Errorf("what another user has %s has mode %#o, want 0777", file, got)
				}
			}
		})
	}
}
