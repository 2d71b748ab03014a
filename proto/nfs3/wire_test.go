package nfs3

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/nfsbox/nfsbox/xdr"
)

// The strings below were written by hand from the text of RFC 1813, one line a
// field, so that encoder and decoder cannot agree on a wrong layout.

const (
	handleHex = `00000005 0102030405000000`
	attrHex   = `
		00000001                   type: NF3REG
		000001a4                   mode: 0644
		00000002                   nlink
		000003e8                   uid
		000003e9                   gid
		0000000100000000           size: 4 GiB
		0000000000001000           used
		00000008 00000001          rdev
		1122334455667788           fsid
		00000000000000ff           fileid
		5f5e1000 00000001          atime
		5f5e1001 00000002          mtime
		5f5e1002 00000003          ctime`
	wccHex = `
		00000001                   before: attributes follow
		0000000000000200           size
		5f5e1001 00000002          mtime
		5f5e1002 00000003          ctime
		00000001                   after: attributes follow` + attrHex
)

var (
	handle = NfsFh3{Data: []byte{1, 2, 3, 4, 5}}
	attr   = Fattr3{
		Type: NF3REG, Mode: 0o644, Nlink: 2, Uid: 1000, Gid: 1001, Size: 4 << 30, Used: 4096,
		Rdev: Specdata3{8, 1}, Fsid: 0x1122334455667788, Fileid: 255,
		Atime: Nfstime3{1600000000, 1}, Mtime: Nfstime3{1600000001, 2}, Ctime: Nfstime3{1600000002, 3},
	}
	postAttr = PostOpAttr{AttributesFollow: true, Attributes: attr}
	wcc      = WccData{
		Before: PreOpAttr{AttributesFollow: true, Attributes: WccAttr{Size: 512, Mtime: attr.Mtime, Ctime: attr.Ctime}},
		After:  postAttr,
	}
	verf = [8]byte{0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4}
)

type value interface {
	xdr.Appender
	xdr.Unmarshaler
}

var wire = []struct {
	name  string
	v     value
	fresh value
	hex   string
}{
	{"GETATTR3res", &GETATTR3res{Resok: GETATTR3resok{ObjAttributes: attr}}, new(GETATTR3res), "00000000 status" + attrHex},
	{"GETATTR3res, stale", &GETATTR3res{Status: NFS3ERR_STALE}, new(GETATTR3res), "00000046 status: 70"},
	{"SETATTR3args", &SETATTR3args{
		Object: handle,
		NewAttributes: Sattr3{
			Mode: SetMode3{true, 0o755}, Gid: SetGid3{true, 7}, Size: SetSize3{true, 9},
			Atime: SetAtime{SetIt: SET_TO_SERVER_TIME}, Mtime: SetMtime{SET_TO_CLIENT_TIME, Nfstime3{5, 6}},
		},
		Guard: Sattrguard3{true, Nfstime3{7, 8}},
	}, new(SETATTR3args), handleHex + `
		00000001 000001ed          mode: 0755
		00000000                   uid: not set
		00000001 00000007          gid
		00000001 0000000000000009  size
		00000001                   atime: the server's
		00000002 00000005 00000006 mtime: the client's
		00000001 00000007 00000008 guard`},
	{"LOOKUP3args", &LOOKUP3args{What: Diropargs3{Dir: handle, Name: []byte("file.txt!")}}, new(LOOKUP3args), handleHex + `
		00000009 66696c652e74787421000000`},
	{"LOOKUP3res", &LOOKUP3res{Resok: LOOKUP3resok{Object: handle, ObjAttributes: postAttr}}, new(LOOKUP3res), `
		00000000                   status
		` + handleHex + `
		00000001                   obj_attributes follow` + attrHex + `
		00000000                   dir_attributes do not`},
	{"LOOKUP3res, not there", &LOOKUP3res{Status: NFS3ERR_NOENT, Resfail: LOOKUP3resfail{DirAttributes: postAttr}}, new(LOOKUP3res), `
		00000002                   status
		00000001                   dir_attributes follow` + attrHex},
	{"READ3args", &READ3args{File: handle, Offset: 0x100000002, Count: 65536}, new(READ3args), handleHex + `
		0000000100000002           offset
		00010000                   count`},
	{"READ3res", &READ3res{Resok: READ3resok{FileAttributes: postAttr, Count: 3, Eof: true, Data: []byte("abc")}}, new(READ3res), `
		00000000                   status
		00000001                   file_attributes follow` + attrHex + `
		00000003                   count
		00000001                   eof
		00000003 61626300          data`},
	{"WRITE3args", &WRITE3args{File: handle, Offset: 9, Count: 2, Stable: FILE_SYNC, Data: []byte("ab")}, new(WRITE3args), handleHex + `
		0000000000000009           offset
		00000002                   count
		00000002                   stable
		00000002 61620000          data`},
	{"WRITE3res", &WRITE3res{Resok: WRITE3resok{FileWcc: wcc, Count: 2, Committed: DATA_SYNC, Verf: verf}}, new(WRITE3res), `
		00000000                   status` + wccHex + `
		00000002                   count
		00000001                   committed
		deadbeef01020304           verf`},
	{"CREATE3args", &CREATE3args{
		Where: Diropargs3{Dir: handle, Name: []byte("f")}, How: Createhow3{Mode: EXCLUSIVE, Verf: verf},
	}, new(CREATE3args), handleHex + `
		00000001 66000000          name
		00000002                   mode: EXCLUSIVE
		deadbeef01020304           verf`},
	{"CREATE3args, guarded", &CREATE3args{
		Where: Diropargs3{Dir: handle, Name: []byte("f")}, How: Createhow3{Mode: GUARDED, ObjAttributes: Sattr3{Uid: SetUid3{true, 3}}},
	}, new(CREATE3args), handleHex + `
		00000001 66000000          name
		00000001                   mode: GUARDED
		00000000 00000001 00000003 00000000 00000000 00000000 00000000`},
	{"CREATE3res", &CREATE3res{Resok: CREATE3resok{Obj: PostOpFh3{true, handle}, ObjAttributes: postAttr, DirWcc: wcc}}, new(CREATE3res), `
		00000000                   status
		00000001                   handle follows
		` + handleHex + `
		00000001                   obj_attributes follow` + attrHex + wccHex},
	{"SYMLINK3args", &SYMLINK3args{
		Where: Diropargs3{Dir: handle, Name: []byte("l")}, Symlink: Symlinkdata3{SymlinkData: []byte("../x")},
	}, new(SYMLINK3args), handleHex + `
		00000001 6c000000          name
		00000000 00000000 00000000 00000000 00000000 00000000
		00000004 2e2e2f78          symlink_data`},
	{"MKNOD3args", &MKNOD3args{
		Where: Diropargs3{Dir: handle, Name: []byte("d")},
		What:  Mknoddata3{Type: NF3BLK, Device: Devicedata3{Spec: Specdata3{8, 1}}},
	}, new(MKNOD3args), handleHex + `
		00000001 64000000          name
		00000003                   type: NF3BLK
		00000000 00000000 00000000 00000000 00000000 00000000
		00000008 00000001          spec`},
	{"RENAME3res", &RENAME3res{Status: NFS3ERR_XDEV, Resfail: RENAME3resfail{FromdirWcc: wcc}}, new(RENAME3res), `
		00000012                   status: 18` + wccHex + `
		00000000 00000000          todir_wcc`},
	{"LINK3args", &LINK3args{File: handle, Link: Diropargs3{Dir: handle, Name: []byte("n")}}, new(LINK3args),
		handleHex + handleHex + "00000001 6e000000"},
	{"READDIR3res", &READDIR3res{Resok: READDIR3resok{
		Cookieverf: verf, Reply: Dirlist3{Entries: []Entry3{{Fileid: 1, Name: []byte("."), Cookie: 2}}},
	}}, new(READDIR3res), `
		00000000                   status
		00000000                   dir_attributes do not follow
		deadbeef01020304           cookieverf
		00000001                   an entry follows
		0000000000000001           fileid
		00000001 2e000000          name
		0000000000000002           cookie
		00000000                   no entry follows
		00000000                   eof`},
	{"READDIRPLUS3args", &READDIRPLUS3args{Dir: handle, Cookie: 3, Cookieverf: verf, Dircount: 512, Maxcount: 4096}, new(READDIRPLUS3args),
		handleHex + `
		0000000000000003           cookie
		deadbeef01020304           cookieverf
		00000200                   dircount
		00001000                   maxcount`},
	{"READDIRPLUS3res", &READDIRPLUS3res{Resok: READDIRPLUS3resok{
		DirAttributes: postAttr, Cookieverf: verf, Reply: Dirlistplus3{
			Entries: []Entryplus3{
				{Fileid: 255, Name: []byte("abcde"), Cookie: 4, NameAttributes: postAttr, NameHandle: PostOpFh3{true, handle}},
				{Fileid: 2, Name: []byte(".."), Cookie: 5},
			}, Eof: true,
		},
	}}, new(READDIRPLUS3res), `
		00000000                   status
		00000001                   dir_attributes follow` + attrHex + `
		deadbeef01020304           cookieverf
		00000001                   an entry follows
		00000000000000ff           fileid
		00000005 6162636465000000  name
		0000000000000004           cookie
		00000001                   name_attributes follow` + attrHex + `
		00000001                   name_handle follows
		` + handleHex + `
		00000001                   an entry follows
		0000000000000002           fileid
		00000002 2e2e0000          name
		0000000000000005           cookie
		00000000                   name_attributes do not follow
		00000000                   name_handle does not follow
		00000000                   no entry follows
		00000001                   eof`},
	{"FSSTAT3res", &FSSTAT3res{Resok: FSSTAT3resok{Tbytes: 1, Fbytes: 2, Abytes: 3, Tfiles: 4, Ffiles: 5, Afiles: 6, Invarsec: 7}},
		new(FSSTAT3res), `
		00000000 00000000
		0000000000000001 0000000000000002 0000000000000003 0000000000000004 0000000000000005 0000000000000006
		00000007                   invarsec`},
	{"FSINFO3res", &FSINFO3res{Resok: FSINFO3resok{
		Rtmax: 1, Rtpref: 2, Rtmult: 3, Wtmax: 4, Wtpref: 5, Wtmult: 6, Dtpref: 7, Maxfilesize: 8,
		TimeDelta: Nfstime3{9, 10}, Properties: FSF3_LINK | FSF3_SYMLINK | FSF3_HOMOGENEOUS | FSF3_CANSETTIME,
	}}, new(FSINFO3res), `
		00000000 00000000
		00000001 00000002 00000003 rtmax, rtpref, rtmult
		00000004 00000005 00000006 wtmax, wtpref, wtmult
		00000007                   dtpref
		0000000000000008           maxfilesize
		00000009 0000000a          time_delta
		0000001b                   properties`},
	{"PATHCONF3res", &PATHCONF3res{Resok: PATHCONF3resok{Linkmax: 1, NameMax: 255, NoTrunc: true, CasePreserving: true}}, new(PATHCONF3res), `
		00000000 00000000
		00000001 000000ff          linkmax, name_max
		00000001 00000000 00000000 00000001`},
	{"COMMIT3args", &COMMIT3args{File: handle, Offset: 1, Count: 2}, new(COMMIT3args), handleHex + "0000000000000001 00000002"},
	{"COMMIT3res", &COMMIT3res{Resok: COMMIT3resok{FileWcc: wcc, Verf: verf}}, new(COMMIT3res), "00000000" + wccHex + "\n deadbeef01020304"},
	{"ACCESS3res", &ACCESS3res{Resok: ACCESS3resok{Access: ACCESS3_READ | ACCESS3_EXECUTE}}, new(ACCESS3res), "00000000 00000000 00000021"},
	{"READLINK3res", &READLINK3res{Resok: READLINK3resok{Data: []byte("/tmp")}}, new(READLINK3res), "00000000 00000000 00000004 2f746d70"},
}

// unhex reads the digits at the start of each line; words end it.
func unhex(t *testing.T, s string) []byte {
	t.Helper()
	var digits strings.Builder
	for line := range strings.SplitSeq(s, "\n") {
		for word := range strings.FieldsSeq(line) {
			if _, err := hex.DecodeString(word); err != nil || len(word)%8 != 0 {
				break
			}
			digits.WriteString(word)
		}
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestWire(t *testing.T) {
	for _, tt := range wire {
		t.Run(tt.name, func(t *testing.T) {
			want := unhex(t, tt.hex)
			got, err := tt.v.AppendXDR(nil)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("got\n%x\nwant\n%x: %v", got, want, err)
			}
			d := xdr.NewDecoder(want)
			if err := tt.fresh.DecodeXDR(&d); err != nil || d.Finish() != nil {
				t.Fatalf("not decoded: %v", d.Finish())
			}
			if got, err := tt.fresh.AppendXDR(nil); err != nil || !bytes.Equal(got, want) {
				t.Errorf("it comes back as\n%x, want\n%x: %v", got, want, err)
			}
		})
	}
}

// TestProgram: the numbers of RFC 1813, section 3.3, and which procedures may be
// repeated.
func TestProgram(t *testing.T) {
	names := strings.Fields(`NULL GETATTR SETATTR LOOKUP ACCESS READLINK READ WRITE CREATE MKDIR SYMLINK
		MKNOD REMOVE RMDIR RENAME LINK READDIR READDIRPLUS FSSTAT FSINFO PATHCONF COMMIT`)
	once := " SETATTR CREATE MKDIR SYMLINK MKNOD REMOVE RMDIR RENAME LINK "
	if NFS_V3.Number != 100003 || NFS_V3.Version != 3 || len(NFS_V3.Procs) != len(names) {
		t.Fatalf("%+v", NFS_V3)
	}
	for i, name := range names {
		p := NFS_V3.Proc(uint32(i))
		if p == nil || p.Name != "NFSPROC3_"+name || p.Program != 100003 || p.Version != 3 {
			t.Errorf("procedure %d is %v", i, p)
			continue
		}
		if p.Repeatable == strings.Contains(once, " "+name+" ") {
			t.Errorf("%v: repeatable is %v", p, p.Repeatable)
		}
		if p.BulkArgs != (name == "WRITE") || p.BulkResult != (name == "READ") {
			t.Errorf("%v: bulk is %v, %v", p, p.BulkArgs, p.BulkResult)
		}
	}
	if NFSPROC3_READ != NFS_V3.Proc(6) || NFSPROC3_COMMIT != NFS_V3.Proc(21) {
		t.Error("a procedure's variable is not its descriptor")
	}
}
