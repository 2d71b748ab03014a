package crash

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/proto/nfsacl3"
)

// errDied says that the server did not live until the end of a check.
var errDied = errors.New("the server died")

// checker compares what a server has with what its clients were told.
type checker struct {
	*crashClient
	l      *ledger
	isDead func() bool
	fail   func(format string, args ...any)
	adopt  bool // what is found is on the disk: it was the power that went
	alone  bool // there is one worker
	seen   map[*object]int
	may    map[*object]bool // what may be lost: see adrift
}

// run checks all, and makes sure what was in doubt.
func (c *checker) run() error {
	c.may = c.l.below(c.adrift)
	if err := c.handles(); err != nil {
		return err
	}
	c.seen = map[*object]int{c.l.root: 1}
	now := make(map[place]*object)
	for todo := []*object{c.l.root}; len(todo) > 0; todo = todo[1:] {
		dir := todo[0]
		there, err := c.directory(dir, now)
		if err != nil {
			return err
		}
		todo = append(todo, there...)
	}
	for _, o := range c.objects() {
		if c.seen[o] == 0 && !o.mayGo && (o.handle != nil || o.found) && !c.may[o] {
			c.fail("an object of type %v, fileid %d, has lost its last name (%s)", o.typ, o.id, c.where(o))
		}
	}
	for o := range c.seen {
		if err := c.object(o); err != nil {
			return err
		}
	}
	for _, o := range c.l.gone {
		var res nfs3.GETATTR3res
		if err := c.ask(c.call(nfs3.NFSPROC3_GETATTR, &nfs3.GETATTR3args{Object: fh(o.handle)}, &res)); err != nil {
			return err
		}
		if res.Status != nfs3.NFS3ERR_STALE {
			c.fail("the handle of an object of type %v that was removed: %v", o.typ, res.Status)
		}
	}
	if c.adopt {
		c.settle(now)
	}
	return nil
}

// adrift reports whether o may be lost because a rename to another directory was
// not answered. To the disk that forgets, a rename is two changes, and it loses
// the object if only the directory of the old name is synced before the power
// goes. The server syncs the other one first. But meanwhile another client's call, or the
// next life of the server, may sync the old one.
func (c *checker) adrift(o *object) bool {
	return o.adrift > 0 && (!c.alone || o.adrift < c.l.life-1)
}

// handles asks for everything by its handle, before a look-up can have renewed one.
func (c *checker) handles() error {
	defer c.done()
	for _, o := range c.objects() {
		if o.handle == nil || o.mayGo || c.may[o] {
			continue
		}
		var res nfs3.GETATTR3res
		if err := c.ask(c.call(nfs3.NFSPROC3_GETATTR, &nfs3.GETATTR3args{Object: fh(o.handle)}, &res)); err != nil {
			return err
		}
		if res.Status != nfs3.NFS3_OK && c.isDead() {
			return errDied
		}
		if res.Status != nfs3.NFS3_OK || res.Resok.ObjAttributes.Fileid != o.id {
			c.fail("the handle of type %v, fileid %d (%s), after the start: %v", o.typ, o.id, c.where(o), res.Status)
		}
	}
	return nil
}

// ask makes of an error of a call the end of a check, or a failure.
func (c *checker) ask(err error) error {
	if err != nil && c.isDead() {
		return errDied
	}
	return err
}

// objects are those that have a name, perhaps.
func (c *checker) objects() (list []*object) {
	seen := make(map[*object]bool)
	for _, names := range c.l.names {
		for _, v := range names {
			for _, o := range v.v {
				if o != nil && !seen[o] {
					seen[o] = true
					list = append(list, o)
				}
			}
		}
	}
	return list
}

// where lists the names that o may have.
func (c *checker) where(o *object) (s string) {
	for dir, names := range c.l.names {
		for name, v := range names {
			if v.has(o) {
				s += fmt.Sprintf(" %d/%s of %d", dir.id, name, len(v.v))
			}
		}
	}
	return s
}

// directory checks the names in dir, and returns the directories among them.
func (c *checker) directory(dir *object, now map[place]*object) (dirs []*object, err error) {
	listed, err := c.list(dir)
	if err != nil {
		return nil, err
	}
	names := c.l.names[dir]
	for name := range listed {
		if v := names[name]; v == nil || !v.where(func(o *object) bool { return o != nil }) {
			c.fail("a name that nobody has made, or that was removed: %s in directory %d", name, dir.id)
		}
	}
	for name, v := range names {
		o, err := c.name(dir, name, v, listed[name])
		if err != nil {
			return nil, err
		}
		if o == nil {
			continue
		}
		now[place{dir, name}] = o
		if c.seen[o]++; o.typ == nfs3.NF3DIR && c.seen[o] == 1 {
			dirs = append(dirs, o)
		}
	}
	return dirs, nil
}

// list reads a directory.
func (c *checker) list(dir *object) (map[string]bool, error) {
	listed := make(map[string]bool)
	args := nfs3.READDIR3args{Dir: fh(dir.handle), Count: 32 << 10}
	for {
		var res nfs3.READDIR3res
		if err := c.ask(c.call(nfs3.NFSPROC3_READDIR, &args, &res)); err != nil {
			return nil, err
		}
		if res.Status != nfs3.NFS3_OK {
			if c.isDead() {
				return nil, errDied
			}
			c.fail("READDIR of directory %d: %v", dir.id, res.Status)
			return listed, nil
		}
		for _, e := range res.Resok.Reply.Entries {
			args.Cookie = e.Cookie
			name := string(e.Name)
			if listed[name] {
				c.fail("READDIR of directory %d has %s twice", dir.id, name)
			}
			if name != "." && name != ".." {
				listed[name] = true
			}
		}
		args.Cookieverf = res.Resok.Cookieverf
		if res.Resok.Reply.Eof || len(res.Resok.Reply.Entries) == 0 {
			return listed, nil
		}
	}
}

// name finds which of the objects that name may stand for is there.
func (c *checker) name(dir *object, name string, v *oneOf[*object], listed bool) (*object, error) {
	if f := v.v[0]; f != nil && f.found && !f.tried {
		if !listed {
			c.fail("a file that was there before, %s, is gone", name)
		}
		return f, nil // not to be asked for yet
	}
	defer c.done()
	var res nfs3.LOOKUP3res
	err := c.ask(c.call(nfs3.NFSPROC3_LOOKUP, &nfs3.LOOKUP3args{What: at(dir.handle, name)}, &res))
	switch {
	case err != nil:
		return nil, err
	case res.Status != nfs3.NFS3_OK && res.Status != nfs3.NFS3ERR_NOENT && c.isDead():
		return nil, errDied
	case (res.Status == nfs3.NFS3_OK) != listed:
		c.fail("LOOKUP of %s in directory %d: %v; READDIR has it: %v", name, dir.id, res.Status, listed)
	}
	if res.Status != nfs3.NFS3_OK {
		if !v.has(nil) {
			c.fail("%s in directory %d is gone: %v", name, dir.id, res.Status)
		}
		return nil, nil
	}
	h, a := bytes.Clone(res.Resok.Object.Data), res.Resok.ObjAttributes.Attributes
	for _, o := range v.v {
		if o != nil && bytes.Equal(o.handle, h) {
			return o, nil
		}
	}
	for _, o := range v.v {
		if o == nil || o.typ != a.Type || o.handle != nil && !(o.mayGo && o.id == a.Fileid) {
			continue
		}
		// Nobody has been told of a handle, or it died when its object nearly did.
		o.handle, o.id = h, a.Fileid
		if o.found {
			o.knows(&a)
		}
		return o, nil
	}
	c.fail("%s in directory %d is another object, of type %v and fileid %d, or has another handle", name, dir.id, a.Type, a.Fileid)
	return nil, nil
}

// object checks what is to be known of o.
func (c *checker) object(o *object) error {
	defer c.done()
	if o.handle == nil {
		return nil
	}
	var res nfs3.GETATTR3res
	if err := c.ask(c.call(nfs3.NFSPROC3_GETATTR, &nfs3.GETATTR3args{Object: fh(o.handle)}, &res)); err != nil {
		return err
	}
	if res.Status != nfs3.NFS3_OK {
		c.fail("the handle of an object of type %v, fileid %d: %v", o.typ, o.id, res.Status)
		return nil
	}
	a := &res.Resok.ObjAttributes
	if a.Type != o.typ || o.id != 0 && a.Fileid != o.id {
		c.fail("a handle of type %v, fileid %d, is of type %v, fileid %d", o.typ, o.id, a.Type, a.Fileid)
	}
	if o.mode.wrong(a.Mode) || o.uid.wrong(a.Uid) || o.gid.wrong(a.Gid) || o.mtime.wrong(a.Mtime) {
		c.fail("attributes of type %v, fileid %d (%s): mode %o, uid %d, gid %d, mtime %v; acknowledged: %o, %v, %v, %v",
			o.typ, o.id, c.where(o), a.Mode, a.Uid, a.Gid, a.Mtime, o.mode.v, o.uid.v, o.gid.v, o.mtime.v)
	}
	if n, exact := c.l.links(o, c.seen); exact && o.typ != nfs3.NF3DIR && int(a.Nlink) != n {
		c.fail("fileid %d has %d links, and %d names", o.id, a.Nlink, n)
	}
	if c.adopt {
		o.knows(a)
		if len(o.mtime.v) > 0 {
			o.mtime.is(a.Mtime)
		}
	}
	switch o.typ {
	case nfs3.NF3REG:
		return errors.Join(c.content(o, int(a.Size)), c.list3(o))
	case nfs3.NF3LNK:
		return c.target(o)
	}
	return nil
}

func (c *checker) content(o *object, size int) error {
	var got []byte
	for len(got) < size {
		res := nfs3.READ3res{Resok: nfs3.READ3resok{Data: make([]byte, 64<<10)}}
		if err := c.ask(c.call(nfs3.NFSPROC3_READ, &nfs3.READ3args{File: fh(o.handle), Offset: uint64(len(got)), Count: 64 << 10}, &res)); err != nil {
			return err
		}
		if res.Status != nfs3.NFS3_OK || res.Resok.Count == 0 {
			if c.isDead() {
				return errDied
			}
			c.fail("READ of fileid %d: %v", o.id, res.Status)
			return nil
		}
		got = append(got, res.Resok.Data[:res.Resok.Count]...)
	}
	if err := o.data.check(got); err != nil {
		c.fail("content of fileid %d (%s): %v", o.id, c.where(o), err)
	}
	if c.adopt {
		o.data = content{stable: got}
	}
	return nil
}

func (c *checker) target(o *object) error {
	var res nfs3.READLINK3res
	if err := c.ask(c.call(nfs3.NFSPROC3_READLINK, &nfs3.READLINK3args{Symlink: fh(o.handle)}, &res)); err != nil {
		return err
	}
	if res.Status != nfs3.NFS3_OK || string(res.Resok.Data) != o.target {
		c.fail("the symbolic link %q is %q, %v", o.target, res.Resok.Data, res.Status)
	}
	return nil
}

// list3 checks the access control list of a file.
func (c *checker) list3(o *object) error {
	if !o.hasACL {
		return nil
	}
	var res nfsacl3.GETACL3res
	if err := c.ask(c.call(nfsacl3.ACLPROC3_GETACL, &nfsacl3.GETACL3args{Fh: nfsacl3.NfsFh3{Data: o.handle}, Mask: nfsacl3.NA_ACL}, &res)); err != nil {
		return err
	}
	text := aclText(res.Resok.Acl.Aclent)
	if len(res.Resok.Acl.Aclent) <= 4 { // what the mode says, and no list of its own
		text = ""
	}
	if res.Status != nfsacl3.NFS3_OK || o.acl.wrong(text) {
		c.fail("the access control list of fileid %d is %s, %v; acknowledged: %v", o.id, text, res.Status, o.acl.v)
	}
	if c.adopt {
		o.acl.is(text)
		o.hasACL = text != ""
	}
	return nil
}

// settle enters in the ledger what the crash has left.
func (c *checker) settle(now map[place]*object) {
	all := c.objects()
	for dir, names := range c.l.names {
		for name, v := range names {
			if o := now[place{dir, name}]; o != nil {
				v.is(o)
			} else {
				delete(names, name)
			}
		}
	}
	for _, o := range all {
		o.mayGo, o.adrift = false, 0
		if c.seen[o] == 0 {
			delete(c.l.names, o)
		} else if o.typ == nfs3.NF3DIR && c.l.names[o] == nil {
			c.l.names[o] = make(map[string]*oneOf[*object])
		}
	}
	c.l.gone = slices.Clip(c.l.gone[max(0, len(c.l.gone)-20):])
}
