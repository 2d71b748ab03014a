package vfs

import (
	"context"
	"math"
	"time"
)

// Unimplemented is embedded in a file system of one's own, and answers for what that does
// not do: changes are [ErrNotSupp], nothing is a symbolic link, Info has generous limits and
// no figures of space. [ReadOnly] is for file systems that nobody changes.
//
//	type news struct{ vfs.ReadOnly; ... }
//
// What it lacks every file system must have, and the compiler asks for it: As, Root, GetAttr,
// Lookup, Open and ReadDir. An FS that acts alike for all callers returns itself from As.
type Unimplemented struct{}

// ReadOnly is [Unimplemented] for a file system that nobody changes: every change is
// [ErrROFS].
type ReadOnly struct{ Unimplemented }

const (
	// defaultTransfer is the most and the best, in bytes, that Info says of one read or
	// write. A larger one is divided by its caller.
	defaultTransfer = 1 << 20
	// defaultPage is the size of a page of a listing that Info says is best, in bytes.
	defaultPage = 64 << 10
)

// Info describes a file system without links: transfers of 1 MiB, files of any size, names of
// [MaxName] bytes that are kept as they are, times of 1 ns, and no space at all. It asks
// nothing of h.
func (Unimplemented) Info(ctx context.Context, h Handle, _ InfoMask) (Info, error) {
	if err := begin(ctx, h); err != nil {
		return Info{}, err
	}
	return Info{
		Valid:   InfoLimits | InfoNames | InfoSpace,
		ReadMax: defaultTransfer, ReadPref: defaultTransfer, ReadMult: 1,
		WriteMax: defaultTransfer, WritePref: defaultTransfer, WriteMult: 1,
		DirPref: defaultPage, MaxFileSize: math.MaxInt64, TimeDelta: time.Nanosecond, Homogeneous: true,
		LinkMax: 1, NameMax: MaxName, NoTrunc: true, ChownRestricted: true, CasePreserving: true,
	}, nil
}

// Access grants what is asked for, but not to execute files: a server takes that for the
// right to read, even where Open refuses. It is an answer to clients that ask beforehand, and
// no permission: what a caller may not do, the method that would do it refuses.
func (Unimplemented) Access(ctx context.Context, h Handle, want Access) (Access, Attr, error) {
	return want & (AccessRead | AccessLookup | AccessModify | AccessExtend | AccessDelete), Attr{}, begin(ctx, h)
}

// Access grants reading and look-ups; see [Unimplemented.Access].
func (ReadOnly) Access(ctx context.Context, h Handle, want Access) (Access, Attr, error) {
	return want & (AccessRead | AccessLookup), Attr{}, begin(ctx, h)
}

// Readlink is [ErrInval], as of everything that is no symbolic link.
func (Unimplemented) Readlink(ctx context.Context, h Handle) (string, Attr, error) {
	return "", Attr{}, refuse(ctx, ErrInval, h)
}

// SetAttr is ErrNotSupp.
func (Unimplemented) SetAttr(ctx context.Context, h Handle, _ *SetAttr, _ *time.Time) (WCC, error) {
	return WCC{}, refuse(ctx, ErrNotSupp, h)
}

// Create is ErrNotSupp.
func (Unimplemented) Create(ctx context.Context, dir Handle, _ string, _ *CreateHow) (Handle, Attr, WCC, error) {
	return Handle{}, Attr{}, WCC{}, refuse(ctx, ErrNotSupp, dir)
}

// Link is ErrNotSupp.
func (Unimplemented) Link(ctx context.Context, h, dir Handle, _ string) (Attr, WCC, error) {
	return Attr{}, WCC{}, refuse(ctx, ErrNotSupp, h, dir)
}

// Remove is ErrNotSupp.
func (Unimplemented) Remove(ctx context.Context, dir Handle, _ string, _ bool) (WCC, error) {
	return WCC{}, refuse(ctx, ErrNotSupp, dir)
}

// Rename is ErrNotSupp.
func (Unimplemented) Rename(ctx context.Context, fromDir Handle, _ string, toDir Handle, _ string) (from, to WCC, err error) {
	return WCC{}, WCC{}, refuse(ctx, ErrNotSupp, fromDir, toDir)
}

// SetAttr is ErrROFS.
func (ReadOnly) SetAttr(ctx context.Context, h Handle, _ *SetAttr, _ *time.Time) (WCC, error) {
	return WCC{}, refuse(ctx, ErrROFS, h)
}

// Create is ErrROFS.
func (ReadOnly) Create(ctx context.Context, dir Handle, _ string, _ *CreateHow) (Handle, Attr, WCC, error) {
	return Handle{}, Attr{}, WCC{}, refuse(ctx, ErrROFS, dir)
}

// Link is ErrROFS.
func (ReadOnly) Link(ctx context.Context, h, dir Handle, _ string) (Attr, WCC, error) {
	return Attr{}, WCC{}, refuse(ctx, ErrROFS, h, dir)
}

// Remove is ErrROFS.
func (ReadOnly) Remove(ctx context.Context, dir Handle, _ string, _ bool) (WCC, error) {
	return WCC{}, refuse(ctx, ErrROFS, dir)
}

// Rename is ErrROFS.
func (ReadOnly) Rename(ctx context.Context, fromDir Handle, _ string, toDir Handle, _ string) (from, to WCC, err error) {
	return WCC{}, WCC{}, refuse(ctx, ErrROFS, fromDir, toDir)
}

// begin is the error of a call whose context has ended, or with a handle that is of no file
// system.
func begin(ctx context.Context, handles ...Handle) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i := range handles {
		if handles[i].IsZero() {
			return ErrBadHandle
		}
	}
	return nil
}

// refuse is s, or the error of begin.
func refuse(ctx context.Context, s Status, handles ...Handle) error {
	if err := begin(ctx, handles...); err != nil {
		return err
	}
	return s
}
