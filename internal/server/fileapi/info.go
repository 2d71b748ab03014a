package fileapi

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/nfsbox/nfsbox/internal/server/object"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

var types = map[vfs.Type]pb.FileType{
	vfs.TypeReg:     pb.FileType_FILE_TYPE_REGULAR,
	vfs.TypeDir:     pb.FileType_FILE_TYPE_DIRECTORY,
	vfs.TypeSymlink: pb.FileType_FILE_TYPE_SYMLINK,
	vfs.TypeBlock:   pb.FileType_FILE_TYPE_BLOCK_DEVICE,
	vfs.TypeChar:    pb.FileType_FILE_TYPE_CHARACTER_DEVICE,
	vfs.TypeSocket:  pb.FileType_FILE_TYPE_SOCKET,
	vfs.TypeFIFO:    pb.FileType_FILE_TYPE_FIFO,
}

// infoOf converts attributes to a message. It leaves out those that are not valid.
func infoOf(a *vfs.Attr) *pb.FileInfo {
	i := &pb.FileInfo{}
	if a.Has(vfs.MaskType) {
		i.Type = types[a.Type]
	}
	for _, f := range []struct {
		mask vfs.Mask
		to   *uint32
		v    uint32
	}{{vfs.MaskMode, &i.Mode, a.Mode}, {vfs.MaskNlink, &i.Nlink, a.Nlink}, {vfs.MaskUID, &i.Uid, a.UID}, {vfs.MaskGID, &i.Gid, a.GID}} {
		if a.Has(f.mask) {
			*f.to = f.v
		}
	}
	for _, f := range []struct {
		mask vfs.Mask
		to   *uint64
		v    uint64
	}{{vfs.MaskSize, &i.Size, a.Size}, {vfs.MaskUsed, &i.Used, a.Used}, {vfs.MaskFileID, &i.FileId, a.FileID}} {
		if a.Has(f.mask) {
			*f.to = f.v
		}
	}
	for _, f := range []struct {
		mask vfs.Mask
		to   **timestamppb.Timestamp
		v    time.Time
	}{{vfs.MaskAtime, &i.Atime, a.Atime}, {vfs.MaskMtime, &i.Mtime, a.Mtime}, {vfs.MaskCtime, &i.Ctime, a.Ctime}} {
		// What no timestamp can say (the year 10000) is left out: JSON has no form
		// for it, and one file's time must not make a listing fail.
		if t := timestamppb.New(f.v); a.Has(f.mask) && t.IsValid() {
			*f.to = t
		}
	}
	return i
}

func infoOfObject(o *object.Info) *pb.FileInfo {
	i := &pb.FileInfo{Type: pb.FileType_FILE_TYPE_REGULAR, Size: uint64(max(o.Size, 0))}
	if t := timestamppb.New(o.ModTime); t.IsValid() {
		i.Mtime = t
	}
	return i
}
