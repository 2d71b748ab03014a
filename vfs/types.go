package vfs

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"
)

// MaxHandle is the size of the largest handle, in bytes: NFSv4 has 128 (RFC
// 8881, NFS4_FHSIZE), NFSv3 64.
const MaxHandle = 128

// MaxHandleV3 is the largest handle that an NFSv3 server can hand out (RFC 1813,
// NFS3_FHSIZE).
const MaxHandleV3 = 64

// Handle names an object of a file system. It is a value: comparable, a map
// key, without a pointer. Its bytes mean something only to the file system that made
// it. The zero Handle names nothing.
type Handle struct {
	n uint8
	b [MaxHandle]byte
}

// MakeHandle makes a Handle of p; more than [MaxHandle] bytes, or none, is
// ErrBadHandle.
func MakeHandle(p []byte) (Handle, error) {
	var h Handle
	if len(p) == 0 || len(p) > MaxHandle {
		return h, ErrBadHandle
	}
	h.n = uint8(copy(h.b[:], p))
	return h, nil
}

// Bytes returns the handle's bytes, borrowed from h.
func (h *Handle) Bytes() []byte { return h.b[:h.n] }

// Len is the number of bytes in the handle.
func (h *Handle) Len() int { return int(h.n) }

// IsZero reports whether h names nothing.
func (h *Handle) IsZero() bool { return h.n == 0 }

// String is the handle in hexadecimal, for messages.
func (h Handle) String() string { return fmt.Sprintf("%x", h.b[:h.n]) }

// Caller is an identity on whose behalf a file system is used. A Caller is not
// changed once it has been handed to [FS.As].
type Caller struct {
	UID, GID uint32
	Groups   []uint32 // further groups; the primary one need not be among them
	Client   string   // the client: scopes owners, locks and export rules; "" is local
}

// Equal reports whether a and b are the same identity.
func (c *Caller) Equal(o *Caller) bool {
	if c == nil || o == nil {
		return c == o
	}
	return c.UID == o.UID && c.GID == o.GID && c.Client == o.Client && slices.Equal(c.Groups, o.Groups)
}

// Key is a map's key for c: the same for callers that are Equal, and for no others.
func (c *Caller) Key() string {
	b := make([]byte, 0, 64)
	b = binary.BigEndian.AppendUint32(b, c.UID)
	b = binary.BigEndian.AppendUint32(b, c.GID)
	b = binary.BigEndian.AppendUint32(b, uint32(len(c.Groups)))
	for _, g := range c.Groups {
		b = binary.BigEndian.AppendUint32(b, g)
	}
	return string(append(b, c.Client...))
}

// InGroup reports whether gid is one of the caller's groups.
func (c *Caller) InGroup(gid uint32) bool { return c.GID == gid || slices.Contains(c.Groups, gid) }

// Owner identifies the holder of open and lock state within a client: the
// name, svid and oh of NLM, the owner of NFSv4, the lock_owner of FUSE. It is a
// value and a map key. Share names the share of the file system's locks that the
// owner's count against; several clients may have one together. An empty Share
// means no such bound.
type Owner struct {
	Client string
	Share  string
	ID     [64]byte
	N      uint8
}

// Type is what an object is. The numbers are those of RFC 1813's ftype3.
type Type uint8

// The types of objects.
const (
	TypeNone    Type = iota
	TypeReg          // regular file
	TypeDir          // directory
	TypeBlock        // block device
	TypeChar         // character device
	TypeSymlink      // symbolic link
	TypeSocket       // local socket
	TypeFIFO         // named pipe
)

var typeNames = [...]string{"none", "file", "directory", "block device", "character device", "symlink", "socket", "fifo"}

// String implements fmt.Stringer.
func (t Type) String() string {
	if int(t) < len(typeNames) {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Mask says which fields of an [Attr] are meant.
type Mask uint32

// The fields of Attr, one bit each.
const (
	MaskType Mask = 1 << iota
	MaskMode
	MaskNlink
	MaskUID
	MaskGID
	MaskSize
	MaskUsed
	MaskFileID
	MaskRdev
	MaskChange
	MaskFSID
	MaskAtime
	MaskMtime
	MaskCtime
	MaskBtime
	// MaskHandle is no field: in ReadDir's want it asks for Entry.Handle.
	MaskHandle
)

// MaskV3 is what an NFSv3 fattr3 carries; all of it comes or none.
const MaskV3 = MaskType | MaskMode | MaskNlink | MaskUID | MaskGID | MaskSize | MaskUsed | MaskFileID | MaskRdev |
	MaskChange | MaskFSID | MaskAtime | MaskMtime | MaskCtime

// Attr are the attributes of an object. Only the fields in Valid mean anything.
type Attr struct {
	Valid  Mask
	Type   Type
	Mode   uint32 // permission bits with set-uid, set-gid and sticky: 07777
	Nlink  uint32
	UID    uint32
	GID    uint32
	Size   uint64 // bytes; of a symlink, the length of its target
	Used   uint64 // bytes of storage
	FileID uint64 // the inode number
	Rdev   uint64 // of a device: major in the upper 32 bits, minor in the lower
	// Change grows whenever data or attributes change: NFSv4's changeid, else
	// derived from ctime.
	Change uint64
	FSID   [2]uint64
	Atime  time.Time
	Mtime  time.Time
	Ctime  time.Time
	Btime  time.Time
}

// Has reports whether every field in m is valid.
func (a *Attr) Has(m Mask) bool { return a.Valid&m == m }

// PreAttr are the attributes before an operation, as far as they are known.
type PreAttr struct {
	Valid  Mask // of MaskSize, MaskChange, MaskMtime and MaskCtime
	Size   uint64
	Change uint64
	Mtime  time.Time
	Ctime  time.Time
}

// WCC is weak cache consistency data (RFC 1813, section 2.6): what an object
// was before an operation and is after it. If Atomic, nothing else can have
// changed it in between: a cache that held Before may go on with After. Over NFSv3 it is never set.
type WCC struct {
	Before PreAttr
	Atomic bool
	After  Attr
}

// SetAttr says what SetAttr and Create shall set. Only the fields in Valid, of
// MaskMode, MaskUID, MaskGID, MaskSize, MaskAtime, MaskMtime, are looked at.
type SetAttr struct {
	Valid    Mask
	Mode     uint32 // 07777
	UID, GID uint32
	Size     uint64
	// AtimeNow and MtimeNow set the time by the clock of the side that has the
	// disk; Atime and Mtime are then ignored. A caller that may write may do that.
	AtimeNow, MtimeNow bool
	Atime, Mtime       time.Time
}

// Access is a set of rights (RFC 1813, section 3.3.4; the same bits).
type Access uint32

// The rights.
const (
	AccessRead    Access = 0x01 // read a file, list a directory
	AccessLookup  Access = 0x02 // look a name up in a directory
	AccessModify  Access = 0x04 // change a file's data, or an entry of a directory
	AccessExtend  Access = 0x08 // grow a file, add to a directory
	AccessDelete  Access = 0x10 // remove an entry of a directory
	AccessExecute Access = 0x20 // run a file
)

// Verifier is 8 bytes that change when a server may have lost what it had not yet
// made stable (of a write), or the meaning of its cookies (of a listing).
type Verifier [8]byte

// Pos is a place in a listing of a directory. It is a plain value that can be
// stored and used after a restart. It means something only to the file system that
// made it.
type Pos struct {
	Cookie uint64
	Verf   Verifier
}

// Entry is one name in a directory. Name is borrowed: an Entry and all it holds
// are valid until the iteration's next step.
type Entry struct {
	Name   []byte
	FileID uint64
	Next   Pos    // goes on behind this entry
	Handle Handle // zero if not asked for or not sent
	Attr   Attr   // Valid: what was asked for and sent

	// Foreign says of something without a name what it is, why, and what to do; "" for all others. Name is one that CheckName refuses then.
	Foreign string
}

// CreateMode says what Create does if the name exists (RFC 1813, section 3.3.8).
type CreateMode uint8

// The modes of Create.
const (
	// CreateGuarded: an existing name is ErrExist.
	CreateGuarded CreateMode = iota
	// CreateUnchecked: an existing regular file is taken as it is, but for a
	// size that Set names, which is set. Regular files only.
	CreateUnchecked
	// CreateExclusive: an existing file is ErrExist unless it was created with
	// the same Verf, in which case the call is a repetition and succeeds. Set
	// is not looked at; the caller follows with SetAttr. An FS that cannot do this
	// is ErrNotSupp; the caller then uses CreateGuarded. Regular files only.
	CreateExclusive
)

// CreateHow says what Create makes.
type CreateHow struct {
	Type   Type
	Mode   CreateMode
	Verf   Verifier // CreateExclusive
	Set    SetAttr  // initial attributes
	Target string   // TypeSymlink: the target's bytes, at most 4095 of them
	Rdev   uint64   // TypeBlock, TypeChar: as in Attr
}

// Check returns nil if an FS can be asked for it. A type that Create does not make is [ErrBadType], a target that is too long
// [ErrNameTooLong]. A mode that is not for the type, or a link without a target, is [ErrInval].
func (how *CreateHow) Check() error {
	switch how.Type {
	case TypeReg:
		if how.Mode > CreateExclusive {
			return ErrInval
		}
		return nil
	case TypeSymlink:
		switch {
		case len(how.Target) > MaxPath:
			return ErrNameTooLong
		case how.Target == "":
			return ErrInval
		}
	case TypeDir, TypeBlock, TypeChar, TypeSocket, TypeFIFO:
	default:
		return ErrBadType
	}
	if how.Mode != CreateGuarded {
		return ErrInval
	}
	return nil
}

// Share is a set of accesses that an open uses, or denies to others.
type Share uint8

// The accesses.
const (
	ShareRead Share = 1 << iota
	ShareWrite
)

// Deleg is a delegation: a promise of the server that is recalled through
// [Watcher] before anyone else could notice.
type Deleg uint8

// The delegations.
const (
	DelegNone Deleg = iota
	DelegRead
	DelegWrite
)

// OpenHow says how to open.
type OpenHow struct {
	Access  Share // ShareRead, ShareWrite or both
	Deny    Share // what others may not; ErrNotSupp where the FS has no state for it
	Owner   Owner
	Create  *CreateHow // with At.Dir and At.Name: create the file first
	Want    Deleg
	Reclaim bool // take up again an open from before the server's restart
	Trunc   bool // set the size to zero
	// NoCommit says that the caller will not call Commit, so the file system need
	// not keep what a Commit would need.
	NoCommit bool
}

// At names what to open: Name in Dir, or H itself if Name is empty.
type At struct {
	Dir  Handle
	Name string
	H    Handle
	// Label is what people call the file: a name or a path, as the caller knows it, or "". Nothing is
	// looked up by it.
	Label string
}

// Opened says what Open opened.
type Opened struct {
	H       Handle
	Attr    Attr
	Dir     WCC // of At.Dir, if something was created
	Created bool
	Deleg   Deleg
}

// Stability says how safe written bytes are (RFC 1813, section 3.3.7, stable_how).
type Stability uint8

// The levels, each stronger than the one before.
const (
	Unstable Stability = iota // may be lost in a crash until committed
	DataSync                  // the data is safe, and the metadata needed to read it
	FileSync                  // the data is safe, and all metadata
)

// Written is what a write or commit says about the bytes.
type Written struct {
	Committed Stability // at least what was asked for; after Commit, FileSync
	Verf      Verifier
	WCC       WCC
}

// InfoMask says which parts of an [Info] are meant.
type InfoMask uint8

// The parts of Info, each a procedure of NFSv3.
const (
	InfoLimits InfoMask = 1 << iota // FSINFO
	InfoNames                       // PATHCONF
	InfoSpace                       // FSSTAT
)

// Info describes the file system that holds an object. Sizes are in bytes.
type Info struct {
	Valid InfoMask

	// InfoLimits: transfer sizes (maximum, preferred, multiple) of reads and
	// writes, preferred size of a page of a listing, largest file, and the
	// resolution and range of times.
	ReadMax, ReadPref, ReadMult    uint32
	WriteMax, WritePref, WriteMult uint32
	DirPref                        uint32
	MaxFileSize                    uint64
	TimeDelta                      time.Duration
	HasLinks, HasSymlinks          bool // hard links, symbolic links
	Homogeneous                    bool // InfoNames is the same for all of it
	CanSetTime                     bool // times can be set exactly, within TimeDelta
	NFSTimes                       bool // a time before 1970 or after 2106 may become the nearest one between

	// InfoNames
	LinkMax, NameMax uint32
	NoTrunc          bool // long names are refused, not cut
	ChownRestricted  bool // only the privileged may give files away
	CaseInsensitive  bool
	CasePreserving   bool

	// InfoSpace: in total, free, free to this caller; and for how long this is
	// likely to hold.
	TotalBytes, FreeBytes, AvailBytes uint64
	TotalFiles, FreeFiles, AvailFiles uint64
	Invarsec                          time.Duration
}
