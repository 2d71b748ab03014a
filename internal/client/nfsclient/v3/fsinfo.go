package v3

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// Info makes one call for each part that want names (FSSTAT, FSINFO, PATHCONF: sections 3.3.18 to
// 3.3.20). The limits of the root and the options are asked for only once per FS.
func (f *FS) Info(ctx context.Context, h vfs.Handle, want vfs.InfoMask) (info vfs.Info, err error) {
	if err := checkHandle(&h); err != nil {
		return info, err
	}
	if want&vfs.InfoLimits != 0 {
		limits, err := f.fsinfo(ctx)
		if err != nil {
			return info, err
		}
		info = *limits
	}
	if want&vfs.InfoNames != 0 {
		if err := f.pathconf(ctx, &h, &info); err != nil {
			return info, err
		}
	}
	if want&vfs.InfoSpace != 0 {
		if err := f.fsstat(ctx, &h, &info); err != nil {
			return info, err
		}
	}
	return info, nil
}

// fsinfo returns the limits, and asks for them the first time. The result is shared and must not be
// changed. If the server refuses, the limits are the sizes that every server takes.
func (f *FS) fsinfo(ctx context.Context) (*vfs.Info, error) {
	if limits := f.limits.Load(); limits != nil {
		return limits, nil
	}
	root := f.root
	args, res := nfs3.FSINFO3args{Fsroot: fh(&root)}, nfs3.FSINFO3res{}
	reply, err := f.do(ctx, nfs3.NFSPROC3_FSINFO, &args, &res)
	defer reply.Release()
	if _, refused := errors.AsType[*StatusError](err); err != nil && !refused {
		return nil, err
	}
	limits := f.limitsOf(&res.Resok)
	if err == nil { // a refusal is not remembered
		f.limits.CompareAndSwap(nil, limits)
	}
	return limits, nil
}

func (f *FS) limitsOf(ok *nfs3.FSINFO3resok) *vfs.Info {
	i := &vfs.Info{
		Valid:       vfs.InfoLimits,
		ReadMax:     transfer(f.opt.ReadMax, ok.Rtmax),
		ReadMult:    ok.Rtmult,
		WriteMax:    transfer(f.opt.WriteMax, ok.Wtmax),
		WriteMult:   ok.Wtmult,
		DirPref:     ok.Dtpref,
		MaxFileSize: ok.Maxfilesize,
		TimeDelta:   time.Duration(ok.TimeDelta.Seconds)*time.Second + time.Duration(ok.TimeDelta.Nseconds),
		HasLinks:    ok.Properties&nfs3.FSF3_LINK != 0,
		HasSymlinks: ok.Properties&nfs3.FSF3_SYMLINK != 0,
		Homogeneous: ok.Properties&nfs3.FSF3_HOMOGENEOUS != 0,
		CanSetTime:  ok.Properties&nfs3.FSF3_CANSETTIME != 0,
		NFSTimes:    true, // nfstime3
	}
	i.ReadPref = min(i.ReadMax, cmp.Or(ok.Rtpref, i.ReadMax))
	i.WritePref = min(i.WriteMax, cmp.Or(ok.Wtpref, i.WriteMax))
	return i
}

func (f *FS) fsstat(ctx context.Context, h *vfs.Handle, info *vfs.Info) error {
	args, res := nfs3.FSSTAT3args{Fsroot: fh(h)}, nfs3.FSSTAT3res{}
	reply, err := f.do(ctx, nfs3.NFSPROC3_FSSTAT, &args, &res)
	defer reply.Release()
	if err != nil {
		return err
	}
	ok := &res.Resok
	info.Valid |= vfs.InfoSpace
	info.TotalBytes, info.FreeBytes, info.AvailBytes = ok.Tbytes, ok.Fbytes, ok.Abytes
	info.TotalFiles, info.FreeFiles, info.AvailFiles = ok.Tfiles, ok.Ffiles, ok.Afiles
	info.Invarsec = time.Duration(ok.Invarsec) * time.Second
	return nil
}

func (f *FS) pathconf(ctx context.Context, h *vfs.Handle, info *vfs.Info) error {
	args, res := nfs3.PATHCONF3args{Object: fh(h)}, nfs3.PATHCONF3res{}
	reply, err := f.do(ctx, nfs3.NFSPROC3_PATHCONF, &args, &res)
	defer reply.Release()
	if err != nil {
		return err
	}
	ok := &res.Resok
	info.Valid |= vfs.InfoNames
	info.LinkMax, info.NameMax = ok.Linkmax, ok.NameMax
	info.NoTrunc, info.ChownRestricted = ok.NoTrunc, ok.ChownRestricted
	info.CaseInsensitive, info.CasePreserving = ok.CaseInsensitive, ok.CasePreserving
	return nil
}
