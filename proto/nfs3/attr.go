package nfs3

import (
	"fmt"
	"math"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// modeBits are the bits of a mode that the protocol names (RFC 1813, section
// 2.5, mode3). Some servers add those of the file type.
const modeBits = 0o7777

// Sent is what must be known of an object before a fattr3 can be sent.
const Sent = vfs.MaskType | vfs.MaskMode | vfs.MaskNlink | vfs.MaskUID | vfs.MaskGID | vfs.MaskSize |
	vfs.MaskFileID | vfs.MaskMtime | vfs.MaskCtime

// Time is t on the wire: unsigned 32-bit seconds (RFC 1813, section 2.5,
// nfstime3). A time before 1970 or after 2106 becomes the nearest one that fits; exact
// is then false.
func Time(t time.Time) (w Nfstime3, exact bool) {
	switch sec := t.Unix(); {
	case t.IsZero() || sec < 0:
		return Nfstime3{}, t.IsZero()
	case sec > math.MaxUint32:
		return Nfstime3{Seconds: math.MaxUint32, Nseconds: 999999999}, false
	default:
		return Nfstime3{Seconds: uint32(sec), Nseconds: uint32(t.Nanosecond())}, true
	}
}

// Time is w as a time.
func (w Nfstime3) Time() time.Time { return time.Unix(int64(w.Seconds), int64(w.Nseconds)) }

// change derives a change number from a ctime. It grows with the ctime, and
// that is all that NFSv3 has.
func change(ctime Nfstime3) uint64 { return uint64(ctime.Seconds)*1e9 + uint64(ctime.Nseconds) }

// VFS is t, or vfs.TypeNone for a number that RFC 1813 does not know.
func (t Ftype3) VFS() vfs.Type {
	if t < NF3REG || t > NF3FIFO {
		return vfs.TypeNone
	}
	return vfs.Type(t)
}

// SetVFS fills a with f. All of vfs.MaskV3 becomes valid.
func (f *Fattr3) SetVFS(a *vfs.Attr) {
	// Field by field: a literal would be built beside a and then copied, which
	// costs as much again, and this is done for every entry of a listing.
	a.Valid = vfs.MaskV3
	a.Type = f.Type.VFS()
	a.Mode = f.Mode & modeBits
	a.Nlink, a.UID, a.GID = f.Nlink, f.Uid, f.Gid
	a.Size, a.Used = f.Size, f.Used
	a.FileID = f.Fileid
	a.Rdev = uint64(f.Rdev.Specdata1)<<32 | uint64(f.Rdev.Specdata2)
	a.Change = change(f.Ctime)
	a.FSID = [2]uint64{f.Fsid}
	a.Atime, a.Mtime, a.Ctime = f.Atime.Time(), f.Mtime.Time(), f.Ctime.Time()
	a.Btime = time.Time{}
}

// SetAttr fills f with a, which must have all of [Sent]. If Used is not valid in a, Size is
// sent for it, and Mtime for Atime.
func (f *Fattr3) SetAttr(a *vfs.Attr) {
	*f = Fattr3{
		Type:   Ftype3(a.Type),
		Mode:   a.Mode & modeBits,
		Nlink:  a.Nlink,
		Uid:    a.UID,
		Gid:    a.GID,
		Size:   a.Size,
		Used:   a.Used,
		Rdev:   Specdata3{Specdata1: uint32(a.Rdev >> 32), Specdata2: uint32(a.Rdev)},
		Fsid:   a.FSID[0] ^ a.FSID[1],
		Fileid: a.FileID,
	}
	// A time that does not fit is clamped: the protocol has no other.
	f.Mtime, _ = Time(a.Mtime)
	f.Ctime, _ = Time(a.Ctime)
	f.Atime = f.Mtime
	if a.Has(vfs.MaskAtime) {
		f.Atime, _ = Time(a.Atime)
	}
	if !a.Has(vfs.MaskUsed) {
		f.Used = a.Size
	}
}

// VFS is the attributes that came, or an Attr in which nothing is valid.
func (p *PostOpAttr) VFS() (a vfs.Attr) {
	if p.AttributesFollow {
		p.Attributes.SetVFS(&a)
	}
	return a
}

// SetAttr fills p with a, or with nothing if a lacks what must be sent.
func (p *PostOpAttr) SetAttr(a *vfs.Attr) {
	if p.AttributesFollow = a.Has(Sent); p.AttributesFollow {
		p.Attributes.SetAttr(a)
	}
}

// VFS is w in the terms of the contract. It is never Atomic. RFC 1813, section 2.6, has servers send the attributes
// before an operation only if nothing else came between, and does not say how a client can tell: many servers
// read them without a lock, and a local program
// may write at any time. Even honest ones prove little: two changes within one step of the server's clock
// (FSINFO, time_delta) have the same ctime, so that Before equals what a cache holds although another
// client's WRITE came first. A cache therefore drops what it has of a file that it writes to, and asks again.
func (w *WccData) VFS() vfs.WCC {
	out := vfs.WCC{After: w.After.VFS()}
	if w.Before.AttributesFollow {
		b := &w.Before.Attributes
		out.Before = vfs.PreAttr{
			Valid:  vfs.MaskSize | vfs.MaskMtime | vfs.MaskCtime | vfs.MaskChange,
			Size:   b.Size,
			Change: change(b.Ctime),
			Mtime:  b.Mtime.Time(),
			Ctime:  b.Ctime.Time(),
		}
	}
	return out
}

// SetWCC fills w with v.
func (w *WccData) SetWCC(v *vfs.WCC) {
	const sent = vfs.MaskSize | vfs.MaskMtime | vfs.MaskCtime
	if w.Before.AttributesFollow = v.Before.Valid&sent == sent; w.Before.AttributesFollow {
		b := &w.Before.Attributes
		b.Size = v.Before.Size
		b.Mtime, _ = Time(v.Before.Mtime)
		b.Ctime, _ = Time(v.Before.Ctime)
	}
	w.After.SetAttr(&v.After)
}

// Check is vfs.ErrInval if s asks for a time with a second or more of nanoseconds (RFC
// 1813, section 2.5: they are a part of a second).
func (s *Sattr3) Check() error {
	const second = uint32(time.Second)
	if s.Atime.SetIt == SET_TO_CLIENT_TIME && s.Atime.Atime.Nseconds >= second ||
		s.Mtime.SetIt == SET_TO_CLIENT_TIME && s.Mtime.Mtime.Nseconds >= second {
		return fmt.Errorf("nfs3: a time with more than 999999999 nanoseconds: %w", vfs.ErrInval)
	}
	return nil
}

// VFS is what s asks to set. A time that Check refuses is carried over into its seconds.
func (s *Sattr3) VFS() (v vfs.SetAttr) {
	if s.Mode.SetIt {
		v.Valid |= vfs.MaskMode
		v.Mode = s.Mode.Mode & modeBits
	}
	if s.Uid.SetIt {
		v.Valid |= vfs.MaskUID
		v.UID = s.Uid.Uid
	}
	if s.Gid.SetIt {
		v.Valid |= vfs.MaskGID
		v.GID = s.Gid.Gid
	}
	if s.Size.SetIt {
		v.Valid |= vfs.MaskSize
		v.Size = s.Size.Size
	}
	switch s.Atime.SetIt {
	case SET_TO_SERVER_TIME:
		v.Valid |= vfs.MaskAtime
		v.AtimeNow = true
	case SET_TO_CLIENT_TIME:
		v.Valid |= vfs.MaskAtime
		v.Atime = s.Atime.Atime.Time()
	}
	switch s.Mtime.SetIt {
	case SET_TO_SERVER_TIME:
		v.Valid |= vfs.MaskMtime
		v.MtimeNow = true
	case SET_TO_CLIENT_TIME:
		v.Valid |= vfs.MaskMtime
		v.Mtime = s.Mtime.Mtime.Time()
	}
	return v
}

// SetAttr fills s with v. exact is false if a time had to be clamped.
func (s *Sattr3) SetAttr(v *vfs.SetAttr) (exact bool) {
	*s = Sattr3{}
	s.Mode.SetIt, s.Mode.Mode = v.Valid&vfs.MaskMode != 0, v.Mode&modeBits
	s.Uid.SetIt, s.Uid.Uid = v.Valid&vfs.MaskUID != 0, v.UID
	s.Gid.SetIt, s.Gid.Gid = v.Valid&vfs.MaskGID != 0, v.GID
	s.Size.SetIt, s.Size.Size = v.Valid&vfs.MaskSize != 0, v.Size
	exactA, exactM := true, true
	switch {
	case v.Valid&vfs.MaskAtime == 0:
	case v.AtimeNow:
		s.Atime.SetIt = SET_TO_SERVER_TIME
	default:
		s.Atime.SetIt = SET_TO_CLIENT_TIME
		s.Atime.Atime, exactA = Time(v.Atime)
	}
	switch {
	case v.Valid&vfs.MaskMtime == 0:
	case v.MtimeNow:
		s.Mtime.SetIt = SET_TO_SERVER_TIME
	default:
		s.Mtime.SetIt = SET_TO_CLIENT_TIME
		s.Mtime.Mtime, exactM = Time(v.Mtime)
	}
	return exactA && exactM
}

// VFS is the handle in f; a length that no handle has is vfs.ErrBadHandle.
func (f *NfsFh3) VFS() (vfs.Handle, error) { return vfs.MakeHandle(f.Data) }

// SetHandle makes f the handle h, borrowed from it.
func (f *NfsFh3) SetHandle(h *vfs.Handle) { f.Data = h.Bytes() }

// VFS is the handle that came, or the zero Handle.
func (p *PostOpFh3) VFS() (h vfs.Handle, err error) {
	if p.HandleFollows {
		return p.Handle.VFS()
	}
	return h, nil
}

// SetHandle makes p the handle h, borrowed from it, or nothing if h is zero.
func (p *PostOpFh3) SetHandle(h *vfs.Handle) {
	if p.HandleFollows = !h.IsZero(); p.HandleFollows {
		p.Handle.SetHandle(h)
	}
}
