package fileapi

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"unicode/utf8"

	"connectrpc.com/connect"

	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// A page token is a place in a directory, in base64:
//
//	byte  0     tokenVersion
//	bytes 1-8   the file system's cookie, big-endian
//	bytes 9-16  its verifier
const (
	tokenVersion = 1
	tokenSize    = 1 + 8 + len(vfs.Verifier{})
)

func tokenOfPos(pos vfs.Pos) string {
	b := append(make([]byte, 0, tokenSize), tokenVersion)
	b = binary.BigEndian.AppendUint64(b, pos.Cookie)
	return base64.RawURLEncoding.EncodeToString(append(b, pos.Verf[:]...))
}

func posOfToken(token string) (pos vfs.Pos, err error) {
	if token == "" {
		return pos, nil
	}
	if len(token) == base64.RawURLEncoding.EncodedLen(tokenSize) {
		b, err := base64.RawURLEncoding.DecodeString(token)
		if err == nil && b[0] == tokenVersion {
			pos.Cookie = binary.BigEndian.Uint64(b[1:])
			copy(pos.Verf[:], b[9:])
			return pos, nil
		}
	}
	return pos, refuse(connect.CodeInvalidArgument, "the page token is none of this server's")
}

func (s service) List(ctx context.Context, q *pb.ListRequest) (*pb.ListResponse, error) {
	pos, err := posOfToken(q.GetPageToken())
	if err != nil {
		return nil, err
	}
	p, err := s.find(ctx, q)
	if err != nil {
		return nil, err
	}
	dir, attr, err := p.resolve(ctx, true)
	if err != nil {
		return nil, err
	}
	if attr.Type != vfs.TypeDir {
		return nil, vfs.ErrNotDir
	}
	return p.page(ctx, dir, pos, q)
}

// What an entry of a page costs in memory, decoded and in the answer, in bytes: without
// its name, and for the attributes.
const (
	entryCost = 128
	infoCost  = 512
)

// page reads one page of a directory. A page without entries is the last one, so page
// reads on while it finds only the server's own names.
func (p *place) page(ctx context.Context, dir vfs.Handle, pos vfs.Pos, q *pb.ListRequest) (*pb.ListResponse, error) {
	size := int(min(q.GetPageSize(), maxPage))
	if size == 0 {
		size = maxPage
	}
	want, each := vfs.Mask(0), entryCost
	if q.GetWithInfo() {
		want, each = vfs.MaskV3|vfs.MaskHandle, entryCost+infoCost
	}
	r, call := &pb.ListResponse{}, requestOf(ctx).call
	for entry, err := range p.ReadDir(ctx, dir, pos, want, pageBytes) {
		if err != nil {
			return nil, err
		}
		if len(r.Entries) == size {
			// There is one more entry, so this page is not the last.
			r.NextPageToken = tokenOfPos(pos)
			break
		}
		pos = entry.Next
		if reserved(string(entry.Name)) {
			continue
		}
		if err := call.hold(each + 2*len(entry.Name)); err != nil {
			return nil, err
		}
		r.Entries = append(r.Entries, p.entry(ctx, dir, entry, q.GetWithInfo()))
	}
	return r, nil
}

// entry is a page's entry for a name. If the object is gone by now, or the caller may not
// look at it, the entry has no attributes.
func (p *place) entry(ctx context.Context, dir vfs.Handle, entry *vfs.Entry, withInfo bool) *pb.Entry {
	e := &pb.Entry{}
	if utf8.Valid(entry.Name) {
		e.Name = string(entry.Name)
	} else {
		e.RawName = append([]byte(nil), entry.Name...)
	}
	if !withInfo {
		return e
	}
	attr, err := entry.Attr, error(nil)
	if !attr.Has(vfs.MaskV3) {
		h := entry.Handle
		if h.IsZero() {
			h, attr, _, err = p.Lookup(ctx, dir, string(entry.Name))
		}
		if err == nil && !attr.Has(vfs.MaskV3) {
			attr, err = p.GetAttr(ctx, h, vfs.MaskV3)
		}
	}
	if err == nil {
		e.Info = infoOf(&attr)
	}
	return e
}
