package main

import (
	"errors"
	"fmt"

	"github.com/nfsbox/nfsbox/proto/mount3"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/xdr"
)

const (
	fileSize   = 64 << 20
	dirEntries = 20_000
	maxRead    = 1 << 20
)

// Handles are one byte, and what they say is all that there is: the root, in
// which every name is a file or, if it is "entries", a directory.
const (
	rootHandle = 'r'
	fileHandle = 'f'
	dirHandle  = 'd'
)

var zeros [maxRead]byte // never written

// errUnknownProgram is what clients are told who try what else there may be.
var errUnknownProgram = errors.New("unknown program")

func results(out []byte, prog, proc uint32, args *xdr.Decoder) ([]byte, error) {
	switch {
	case proc == 0:
		return out, nil
	case prog == mount3.MOUNT_PROGRAM && proc == mount3.MOUNTPROC3_MNT.Number:
		res := mount3.Mountres3{Mountinfo: mount3.Mountres3Ok{Fhandle: []byte{rootHandle}, AuthFlavors: []int32{1}}}
		return res.AppendXDR(out)
	case prog == mount3.MOUNT_PROGRAM && proc == mount3.MOUNTPROC3_UMNT.Number:
		return out, nil
	case prog == mount3.MOUNT_PROGRAM && proc == mount3.MOUNTPROC3_EXPORT.Number:
		return (&mount3.Exports{{ExDir: []byte("/")}}).AppendXDR(out)
	case prog != nfs3.NFS_PROGRAM:
		return out, errUnknownProgram
	}
	return nfs(out, proc, args)
}

func nfs(out []byte, proc uint32, args *xdr.Decoder) ([]byte, error) {
	handle := args.Opaque("handle", nfs3.NFS3_FHSIZE)
	if len(handle) == 0 {
		return out, fmt.Errorf("procedure %d without a handle", proc)
	}
	here := follow(handle[0])
	switch proc {
	case nfs3.NFSPROC3_GETATTR.Number:
		return (&nfs3.GETATTR3res{Resok: nfs3.GETATTR3resok{ObjAttributes: here.Attributes}}).AppendXDR(out)
	case nfs3.NFSPROC3_LOOKUP.Number:
		h := byte(fileHandle)
		if string(args.Opaque("name", 255)) == "entries" {
			h = dirHandle
		}
		return (&nfs3.LOOKUP3res{Resok: nfs3.LOOKUP3resok{
			Object: nfs3.NfsFh3{Data: []byte{h}}, ObjAttributes: follow(h), DirAttributes: here,
		}}).AppendXDR(out)
	case nfs3.NFSPROC3_ACCESS.Number:
		return (&nfs3.ACCESS3res{Resok: nfs3.ACCESS3resok{ObjAttributes: here, Access: args.Uint32()}}).AppendXDR(out)
	case nfs3.NFSPROC3_READ.Number:
		off, n := args.Uint64(), min(args.Uint32(), maxRead)
		return (&nfs3.READ3res{Resok: nfs3.READ3resok{
			FileAttributes: here, Count: n, Eof: off+uint64(n) >= fileSize, Data: zeros[:n],
		}}).AppendXDR(out)
	case nfs3.NFSPROC3_FSINFO.Number:
		return (&nfs3.FSINFO3res{Resok: nfs3.FSINFO3resok{
			ObjAttributes: here, Rtmax: maxRead, Rtpref: maxRead, Rtmult: 4096, Wtmax: maxRead, Wtpref: maxRead, Wtmult: 4096,
			Dtpref: maxRead, Maxfilesize: 1 << 62, TimeDelta: nfs3.Nfstime3{Nseconds: 1}, Properties: 0x1b,
		}}).AppendXDR(out)
	case nfs3.NFSPROC3_PATHCONF.Number:
		return (&nfs3.PATHCONF3res{Resok: nfs3.PATHCONF3resok{ObjAttributes: here, Linkmax: 1, NameMax: 255, NoTrunc: true}}).AppendXDR(out)
	case nfs3.NFSPROC3_READDIRPLUS.Number:
		cookie := args.Uint64()
		args.Fixed(8)
		args.Uint32()
		return list(out, cookie, args.Uint32())
	}
	return out, fmt.Errorf("procedure %d", proc)
}

// follow is the attributes of what a handle stands for.
func follow(h byte) nfs3.PostOpAttr {
	a := nfs3.Fattr3{Type: nfs3.NF3REG, Mode: 0o644, Nlink: 1, Size: fileSize, Used: fileSize, Fileid: uint64(h)}
	if h != fileHandle {
		a.Type, a.Mode = nfs3.NF3DIR, 0o755
	}
	return nfs3.PostOpAttr{AttributesFollow: true, Attributes: a}
}

// list appends a page of a directory: the entries behind cookie, as many as fit.
func list(out []byte, cookie uint64, most uint32) ([]byte, error) {
	res := nfs3.READDIRPLUS3res{Resok: nfs3.READDIRPLUS3resok{DirAttributes: follow(dirHandle)}}
	entry := nfs3.Entryplus3{
		NameAttributes: follow(fileHandle),
		NameHandle:     nfs3.PostOpFh3{HandleFollows: true, Handle: nfs3.NfsFh3{Data: []byte("fa-handle-of-32-bytes-as-usual..")}},
	}
	const size = 200 // of an entry, and a little more
	for n := cookie + 1; n <= dirEntries && uint32(len(res.Resok.Reply.Entries)+2)*size < most; n++ {
		entry.Fileid, entry.Cookie = n, n
		if entry.Name = fmt.Appendf(nil, "a-file-of-the-usual-length-%06d", n); n == 1 {
			entry.Name = []byte(".") // without which willscott's client asks for ever
		}
		res.Resok.Reply.Entries = append(res.Resok.Reply.Entries, entry)
	}
	res.Resok.Reply.Eof = cookie+uint64(len(res.Resok.Reply.Entries)) >= dirEntries
	return res.AppendXDR(out)
}
