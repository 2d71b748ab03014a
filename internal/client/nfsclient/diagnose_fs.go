package nfsclient

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// testBytes is how much a diagnosis reads, or writes, of a file.
	testBytes = 1 << 20

	// skewWorthTelling is how far the clocks of server and client must differ to be
	// reported: enough to confuse programs that compare times of files, such as make.
	skewWorthTelling = time.Second

	// timeGrain is the assumed resolution of file times, whatever the server says: a tick
	// of the kernel.
	timeGrain = 10 * time.Millisecond

	// maxEntries bounds how many entries of the directory are looked at.
	maxEntries = 1000
)

func (d *diagnosis) fsinfo(ctx context.Context, s *Step) error {
	i, err := d.conn.fs.Info(ctx, d.root(), vfs.InfoLimits)
	if err != nil {
		return err
	}
	d.grain = i.TimeDelta
	s.Detail = fmt.Sprintf("reads of up to %d bytes, writes of up to %d, files of up to %d; times are exact to %v",
		i.ReadMax, i.WriteMax, i.MaxFileSize, i.TimeDelta)
	if min(i.ReadMax, i.WriteMax) < 64<<10 {
		s.Advice = "transfers are small, which costs throughput: raise the server's limit, and rsize= and wsize= if the URL has them"
	}
	return nil
}

func (d *diagnosis) getattr(ctx context.Context, s *Step) error {
	h, a, err := d.conn.fs.Root(ctx)
	if err != nil {
		return err
	}
	const all = vfs.AccessRead | vfs.AccessLookup | vfs.AccessModify | vfs.AccessExtend | vfs.AccessDelete
	may, _, err := d.conn.fs.Access(ctx, h, all)
	if err != nil {
		return err
	}
	caller := &d.o.FS.Caller
	s.Detail = fmt.Sprintf("a %v of mode %04o, owned by %d:%d; user %d, group %d may", a.Type, a.Mode, a.UID, a.GID, caller.UID, caller.GID)
	for _, r := range []struct {
		right vfs.Access
		what  string
	}{{vfs.AccessRead, " list"}, {vfs.AccessLookup, " enter"}, {vfs.AccessExtend, " add"}, {vfs.AccessDelete, " remove"}} {
		if may&r.right != 0 {
			s.Detail += r.what
		}
	}
	if may == 0 {
		s.Detail += " do nothing"
		s.Advice = "say uid= and gid= in the URL for a user who may; if that user is root, the export squashes it (no_root_squash lets it be)"
	}
	return nil
}

// lookup finds the URL's object in the directory. If there is none it is an error, except to a
// program that is about to create it.
func (d *diagnosis) lookup(ctx context.Context, s *Step) error {
	name := d.conn.target
	if name == "" {
		s.Skipped, s.Detail = true, "the URL names the directory itself"
		return nil
	}
	found, err := d.find(ctx, name)
	if errors.Is(err, vfs.ErrNoEnt) {
		s.Advice = fmt.Sprintf("the directory exists, and %q in it does not, or is a link that leads nowhere: "+
			"see that it is written as it is on the server; what creates it may go ahead", name)
	}
	if err != nil {
		return err
	}
	a, err := d.conn.fs.GetAttr(ctx, found.Handle, vfs.MaskV3)
	if err != nil {
		return err
	}
	if a.Type == vfs.TypeReg {
		d.file = name
	}
	s.Detail = fmt.Sprintf("%q is a %v of mode %04o and %d bytes, owned by %d:%d", name, a.Type, a.Mode, a.Size, a.UID, a.GID)
	return nil
}

// list reads the beginning of the directory, and finds a file to be read.
func (d *diagnosis) list(ctx context.Context, s *Step) error {
	fs, n, more := d.conn.fs, 0, false
	for e, err := range fs.ReadDir(ctx, d.root(), vfs.Pos{}, vfs.MaskV3|vfs.MaskHandle, 0) {
		if err != nil {
			return err
		}
		if n++; n > maxEntries {
			n, more = maxEntries, true
			break
		}
		if d.conn.target == "" && d.file == "" && e.Attr.Has(vfs.MaskType|vfs.MaskSize) && e.Attr.Type == vfs.TypeReg && e.Attr.Size > 0 && vfs.CheckName(string(e.Name)) == nil {
			d.file = string(e.Name)
		}
	}
	switch {
	case more:
		s.Detail = fmt.Sprintf("more than %d entries", n)
	case n == 1:
		s.Detail = "1 entry"
	default:
		s.Detail = fmt.Sprintf("%d entries", n)
	}
	return nil
}

// read reads the beginning of the URL's file, or of one in its directory.
func (d *diagnosis) read(ctx context.Context, s *Step) error {
	name := d.file
	switch {
	case name == "" && d.conn.target == "":
		s.Skipped, s.Detail = true, "there is no file with bytes in it"
		return nil
	case name == "":
		s.Skipped, s.Detail = true, "what the URL names is no file"
		return nil
	}
	r, err := d.find(ctx, name)
	if err != nil {
		return err
	}
	f, _, err := d.conn.fs.Open(ctx, vfs.At{H: r.Handle}, &vfs.OpenHow{Access: vfs.ShareRead})
	if err != nil {
		return err
	}
	start := time.Now()
	n, _, err := vfs.ReadFull(ctx, f, make([]byte, testBytes), 0)
	s.Detail = fmt.Sprintf("%d bytes of %q in %v", n, name, round(time.Since(start)))
	return errors.Join(err, f.Close(ctx))
}

// write makes a file, writes to it, makes it stable, reads it back, and removes it. The file's
// times show the difference of the clocks.
func (d *diagnosis) write(ctx context.Context, s *Step) error {
	if d.o.FS.ReadOnly {
		s.Skipped, s.Detail = true, "the URL says readonly"
		return nil
	}
	var r [8]byte
	d.o.Rand(r[:])
	name := ".nfsbox-doctor-" + hex.EncodeToString(r[:])
	asked := time.Now()
	f, opened, err := d.conn.fs.Open(ctx, vfs.At{Dir: d.root(), Name: name}, &vfs.OpenHow{
		Access: vfs.ShareRead | vfs.ShareWrite,
		Create: &vfs.CreateHow{Type: vfs.TypeReg, Set: vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o600}},
	})
	made := err == nil || errors.Is(err, vfs.ErrUnknownOutcome)
	if err == nil {
		d.clock(&opened.Attr, asked, time.Now())
		err = errors.Join(d.writeBack(ctx, f, s), f.Close(ctx))
	}
	if !made {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tryTime)
	defer cancel()
	if _, e := d.conn.fs.Remove(ctx, d.root(), name, false); e != nil && (err == nil || !errors.Is(e, vfs.ErrNoEnt)) {
		err = errors.Join(err, fmt.Errorf("the file %s is left behind: %w", name, e))
	}
	return err
}

// writeBack writes to f and checks that the server has kept it.
func (d *diagnosis) writeBack(ctx context.Context, f vfs.File, s *Step) error {
	data := make([]byte, testBytes)
	d.o.Rand(data)
	start := time.Now()
	var wrote, kept vfs.Written
	if _, err := vfs.WriteFull(ctx, f, data, 0, vfs.Unstable, &wrote); err != nil {
		return err
	}
	written := time.Now()
	s.Detail = fmt.Sprintf("%d bytes written in %v", len(data), round(written.Sub(start)))
	if wrote.Committed == vfs.FileSync { // some servers always write so, and have no COMMIT
		s.Detail += ", stable at once"
	} else {
		if err := f.Commit(ctx, 0, 0, &kept); err != nil {
			return err
		}
		if kept.Verf != wrote.Verf {
			s.Advice = "the server has restarted between WRITE and COMMIT; if that comes again, it does not keep its promises"
			return errors.New("what was written is not what was made stable")
		}
		s.Detail += fmt.Sprintf(", made stable in %v", round(time.Since(written)))
	}
	back := make([]byte, len(data))
	if n, _, err := vfs.ReadFull(ctx, f, back, 0); err != nil {
		return err
	} else if !bytes.Equal(back[:n], data) {
		s.Advice = "do not use this server: it returns other bytes than it was given"
		return errors.New("what was read back is not what was written")
	}
	return nil
}

// clock reports the difference of the server's clock from this host's. The time of a file that
// was made between two of our times should lie between them.
func (d *diagnosis) clock(a *vfs.Attr, before, after time.Time) {
	s := Step{Name: "clock", Took: after.Sub(before)}
	if !a.Has(vfs.MaskMtime) {
		s.Skipped, s.Detail = true, "the server did not send the new file's times"
		d.report(s)
		return
	}
	half := after.Sub(before) / 2
	skew, doubt := a.Mtime.Sub(before.Add(half)), half+max(timeGrain, d.grain)
	switch {
	case skew.Abs() <= doubt:
		s.Detail = fmt.Sprintf("the server's clock agrees with this host's to within %v", round(doubt))
	case skew > 0:
		s.Detail = fmt.Sprintf("the server's clock is %v ahead of this host's, give or take %v", round(skew), round(doubt))
	default:
		s.Detail = fmt.Sprintf("the server's clock is %v behind this host's, give or take %v", round(-skew), round(doubt))
	}
	if skew.Abs() > max(skewWorthTelling, doubt) {
		s.Advice = "set both clocks by NTP: times of files are the server's, and programs compare them with this host's"
	}
	d.report(s)
}
