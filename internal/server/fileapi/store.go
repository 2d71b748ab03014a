package fileapi

import (
	"context"
	"errors"

	"connectrpc.com/connect"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

const (
	// defaultMode is the mode of a new file for which no mode was asked.
	defaultMode = 0o644
	// setID are the bits of a mode that file systems take from a file which is written to.
	setID = 0o6000
)

// stored is the result of an upload.
type stored struct {
	info     *pb.FileInfo
	checksum string
	existed  bool
	tag      string // of a file that was put by HTTP; "": not known
}

// store stores a file whole: by content, or by its path.
func (s *Server) store(ctx context.Context, in *incoming) (*stored, error) {
	if in.head.GetContent() != "" {
		return s.storeContent(ctx, in)
	}
	p, err := s.find(ctx, in.head)
	if err != nil {
		return nil, err
	}
	dir, name, err := p.parent(ctx)
	if err != nil {
		return nil, err
	}
	if !in.cond.none() { // now, too: it may spare the client its bytes
		if _, err := p.meets(ctx, dir, name, in.cond); err != nil {
			return nil, err
		}
	}
	mode, err := p.modeFor(ctx, dir, name, in.head.Mode)
	if err != nil {
		return nil, err
	}
	if in.inOne && mode&setID == 0 && !in.head.GetSync() && (in.cond.none() || in.cond.onlyNew()) {
		done, err := p.put(ctx, dir, name, mode, in)
		if err != nil {
			return nil, err
		}
		if done != nil {
			done.checksum = in.checksum
			return done, nil
		}
	}
	tmp, err := s.temps.create(ctx, p.View, dir, mode, in.head.GetSync())
	if err != nil {
		return nil, err
	}
	// If the temporary is left behind, the operator is told. It never has the file's
	// name.
	defer func() { _ = tmp.discard(ctx) }()
	written, err := p.fill(ctx, tmp, in)
	if err != nil {
		return nil, err
	}
	if mode&setID != 0 {
		if err := tmp.restore(ctx, mode); err != nil {
			return nil, err
		}
		written.WCC.After = vfs.Attr{} // which the mode is not in
	}
	existed, err := s.name(ctx, p, tmp, name, in.cond)
	if err != nil {
		return nil, err
	}
	done := &stored{checksum: in.checksum, existed: existed}
	p.describe(ctx, done, tmp.h, &written.WCC.After, in)
	return done, nil
}

// name gives a temporary its name, if what has it now is as cond wants it. It reports
// whether the name existed, where cond is not nil.
func (s *Server) name(ctx context.Context, p *place, tmp *temporary, name string, cond *conditions) (existed bool, err error) {
	defer s.names.lock(tmp.dir, name, !cond.none())()
	if cond != nil {
		if existed, err = p.meets(ctx, tmp.dir, name, cond); err != nil {
			return false, err
		}
	}
	if !cond.onlyNew() {
		_, err = tmp.rename(ctx, name)
		return existed, err
	}
	if err = tmp.link(ctx, name); errors.Is(err, vfs.ErrExist) {
		err = errCondition
	}
	return false, err
}

// modeFor is the mode of a new file: the one asked for, else that of the file which it
// replaces, so that no other users can read the new one.
func (p *place) modeFor(ctx context.Context, dir vfs.Handle, name string, asked *uint32) (uint32, error) {
	if asked != nil {
		if *asked&^0o7777 != 0 {
			return 0, refuse(connect.CodeInvalidArgument, "%#o is no mode", *asked)
		}
		return *asked, nil // the rename checks what has the name
	}
	h, attr, _, err := p.Lookup(ctx, dir, name)
	if err == nil && !attr.Has(vfs.MaskType|vfs.MaskMode) {
		attr, err = p.GetAttr(ctx, h, vfs.MaskType|vfs.MaskMode)
	}
	switch {
	case errors.Is(err, vfs.ErrNoEnt), errors.Is(err, vfs.ErrAccess):
		// A caller that may not look into the directory may not make a file in it, and is
		// told so, as by a file system.
		attr = vfs.Attr{Mode: defaultMode}
	case err != nil:
		return 0, err
	case attr.Type == vfs.TypeDir:
		return 0, vfs.ErrIsDir
	case attr.Type != vfs.TypeReg:
		attr.Mode = defaultMode
	}
	// Set-uid and the like must not pass to new content.
	return attr.Mode & 0o777, nil
}

// put stores a small file under a new name in one step. It returns nil if the export's file
// system cannot, or if the name exists.
func (p *place) put(ctx context.Context, dir vfs.Handle, name string, mode uint32, in *incoming) (*stored, error) {
	data, err := in.whole()
	if err != nil {
		return nil, err
	}
	h, attr, err := p.Unstable().Put(ctx, dir, name, mode, data)
	switch {
	case errors.Is(err, vfs.ErrExist), errors.Is(err, vfs.ErrNotSupp):
		in.again = data
		return nil, nil
	case err != nil:
		return nil, err
	}
	done := &stored{}
	if in.cond == nil && attr.Has(vfs.MaskV3) {
		done.info = infoOf(&attr)
	} else {
		p.describe(ctx, done, h, &attr, in)
	}
	return done, nil
}

// describe says what was stored: to a call the file's attributes, as far as they are known, and
// to a request for a path its tag. An answer that does not wait for the disk has none: the tag
// costs another look at the file.
func (p *place) describe(ctx context.Context, done *stored, h vfs.Handle, written *vfs.Attr, in *incoming) {
	if in.cond == nil {
		done.info = p.infoAfter(ctx, h, written, in.size)
		return
	}
	if !in.head.GetSync() {
		return
	}
	// Without attributes there is no tag, and the file is stored all the same.
	if attr, err := p.GetAttr(ctx, h, vfs.MaskV3); err == nil {
		done.tag = tagOf(h, &attr)
	}
}

// fill writes the bytes, as stably as is asked. It returns what the last write said.
func (p *place) fill(ctx context.Context, tmp *temporary, in *incoming) (last vfs.Written, err error) {
	var written vfs.Written // the first write's verifier is what the others must share
	changed := false
	for off := uint64(0); ; off = in.size {
		data, err := in.next()
		if err != nil && in.complete {
			break
		}
		if err != nil {
			return last, err
		}
		var w vfs.Written
		if _, err := vfs.WriteFull(ctx, tmp.file, data, off, vfs.Unstable, &w); err != nil {
			return last, err
		}
		last = w
		changed = changed || off > 0 && w.Verf != written.Verf
		if off == 0 {
			written = w
		}
	}
	if in.head.GetSync() { // also if there are no bytes: it was not made stable
		var w vfs.Written
		if err := tmp.file.Commit(ctx, 0, 0, &w); err != nil {
			return last, err
		}
		changed = changed || in.size > 0 && w.Verf != written.Verf
	}
	if changed {
		return last, errRestarted
	}
	return last, nil
}

// infoAfter describes a file of so many bytes that has just got its name, by the
// attributes of its last write if those are complete.
func (p *place) infoAfter(ctx context.Context, h vfs.Handle, written *vfs.Attr, size uint64) *pb.FileInfo {
	if written.Has(vfs.MaskV3) && written.Size == size {
		a := *written
		a.Valid &^= vfs.MaskCtime // which the rename has changed since
		return infoOf(&a)
	}
	attr, err := p.GetAttr(ctx, h, vfs.MaskV3)
	if err != nil {
		// The file is stored. If another caller has replaced it already, or if it cannot
		// be looked at, the upload has still succeeded.
		return &pb.FileInfo{Type: pb.FileType_FILE_TYPE_REGULAR, Size: size}
	}
	return infoOf(&attr)
}

// errRestarted says that the file system below may have lost bytes that were written
// and not yet stable.
var errRestarted = connect.NewError(connect.CodeUnavailable, plainError("the server's disk has restarted during the upload: send it again"))

// change writes into an existing file, in place. data is complete and checked; a crash may
// leave a part of it written.
func (s *Server) change(ctx context.Context, in *incoming, off uint64) (*stored, error) {
	data, err := in.whole()
	if err != nil {
		return nil, err
	}
	switch {
	case in.head.GetContent() != "":
		return nil, refuse(connect.CodeInvalidArgument, "content is stored whole, and does not change")
	case in.head.Mode != nil:
		return nil, refuse(connect.CodeInvalidArgument, "a range has no mode")
	case off > s.o.Limits.FileSize || uint64(len(data)) > s.o.Limits.FileSize-off:
		return nil, tooLarge()
	}
	p, err := s.find(ctx, in.head)
	if err != nil {
		return nil, err
	}
	h, f, _, err := p.open(ctx, vfs.ShareWrite)
	if err != nil {
		return nil, err
	}
	how := vfs.Unstable
	if in.head.GetSync() {
		how = vfs.FileSync
	}
	var w vfs.Written
	if _, err = vfs.WriteFull(ctx, f, data, off, how, &w); err == nil && in.head.GetSync() && w.Committed < vfs.FileSync {
		err = errRestarted
	}
	if err = errors.Join(err, f.Close(context.WithoutCancel(ctx))); err != nil {
		return nil, err
	}
	attr, err := p.GetAttr(ctx, h, vfs.MaskV3)
	if err != nil {
		return nil, err
	}
	return &stored{info: infoOf(&attr), checksum: in.checksum}, nil
}

// open opens the regular file that the path names. Its attributes are those from
// before it was opened.
func (p *place) open(ctx context.Context, access vfs.Share) (vfs.Handle, vfs.File, vfs.Attr, error) {
	h, attr, err := p.resolve(ctx, true)
	if err != nil {
		return h, nil, attr, err
	}
	switch attr.Type {
	case vfs.TypeReg:
	case vfs.TypeDir:
		return h, nil, attr, vfs.ErrIsDir
	default:
		return h, nil, attr, refuse(connect.CodeFailedPrecondition, "not a regular file")
	}
	if access == vfs.ShareRead {
		f, err := p.openToRead(ctx, h)
		return h, f, attr, err
	}
	f, _, err := p.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: access})
	return h, f, attr, err
}

// openToRead opens a regular file whose bytes the caller may have.
func (p *place) openToRead(ctx context.Context, h vfs.Handle) (vfs.File, error) {
	if err := p.mayRead(ctx, h); err != nil {
		return nil, err
	}
	f, _, err := p.Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	return f, err
}

// mayRead judges whether the caller may have the bytes of a file. NFS has to read as well what may only be executed,
// and Open may succeed by a descriptor of somebody else's call: the first read is refused then, if there is one.
func (p *place) mayRead(ctx context.Context, h vfs.Handle) error {
	got, _, err := p.Access(ctx, h, vfs.AccessRead)
	if err == nil && got&vfs.AccessRead == 0 {
		err = vfs.ErrAccess
	}
	return err
}
