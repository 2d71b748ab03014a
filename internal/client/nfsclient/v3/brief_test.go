package v3_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// brief is a result that is a status, and what is left of what follows it.
type brief struct {
	status nfs3.Nfsstat3
	rest   []byte
}

func (b *brief) AppendXDR(to []byte) ([]byte, error) {
	return append(xdr.AppendInt32(to, int32(b.status)), b.rest...), nil
}

// TestBriefRefusals believes an error status though what follows is cut, and takes
// nothing of that for true; a cut success is none.
func TestBriefRefusals(t *testing.T) {
	half := append(xdr.AppendUint32(nil, 1), 0, 0, 0, 2, 0, 0) // attributes, which end soon
	for _, rest := range [][]byte{nil, make([]byte, 4), half} {
		st := play(t, script{
			nfs3.NFSPROC3_LINK:        always(&brief{nfs3.NFS3ERR_NOTSUPP, rest}),
			nfs3.NFSPROC3_REMOVE:      always(&brief{nfs3.NFS3ERR_ACCES, rest}),
			nfs3.NFSPROC3_RENAME:      always(&brief{nfs3.NFS3ERR_ROFS, rest}),
			nfs3.NFSPROC3_READ:        always(&brief{nfs3.NFS3ERR_IO, nil}),
			nfs3.NFSPROC3_READDIRPLUS: always(&brief{nfs3.NFS3ERR_ACCES, nil}),
			nfs3.NFSPROC3_MKDIR:       always(&brief{nfs3.NFS3_OK, rest}),
		}, v3.Options{})
		dir, file := handle(t, "dir"), handle(t, "file")
		attr, wcc, err := st.fs.Link(t.Context(), file, dir, "x")
		if !errors.Is(err, vfs.ErrNotSupp) || errors.Is(err, vfs.ErrUnknownOutcome) || attr.Valid != 0 || wcc != (vfs.WCC{}) {
			t.Errorf("LINK: %+v, %+v, %v", attr, wcc, err)
		}
		if wcc, err := st.fs.Remove(t.Context(), dir, "x", false); !errors.Is(err, vfs.ErrAccess) || errors.Is(err, vfs.ErrUnknownOutcome) || wcc != (vfs.WCC{}) {
			t.Errorf("REMOVE: %+v, %v", wcc, err)
		}
		if _, _, err := st.fs.Rename(t.Context(), dir, "x", dir, "y"); !errors.Is(err, vfs.ErrROFS) {
			t.Errorf("RENAME: %v", err)
		}
		if _, _, err := st.open(t).ReadAt(t.Context(), make([]byte, 10), 0, nil); !errors.Is(err, vfs.ErrIO) {
			t.Errorf("READ: %v", err)
		}
		if _, _, err := st.list(t, vfs.Pos{}, vfs.MaskV3, 0); !errors.Is(err, vfs.ErrAccess) {
			t.Errorf("READDIRPLUS: %v", err)
		}
		if _, _, _, err := st.fs.Create(t.Context(), dir, "d", &vfs.CreateHow{Type: vfs.TypeDir}); !errors.Is(err, vfs.ErrUnknownOutcome) {
			t.Errorf("MKDIR: %v", err)
		}
	}
}

// TestBriefBusy goes on to read into the caller's buffer after a JUKEBOX that was cut.
func TestBriefBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := play(t, script{nfs3.NFSPROC3_READ: func(n int, _ *oncrpc.Call) xdr.Appender {
			if n < 3 {
				return &brief{nfs3.NFS3ERR_JUKEBOX, nil}
			}
			return &nfs3.READ3res{Resok: nfs3.READ3resok{Count: 3, Eof: true, Data: []byte("abc")}}
		}}, v3.Options{})
		start := time.Now()
		buf := make([]byte, 8)
		n, _, err := st.open(t).ReadAt(t.Context(), buf, 0, nil)
		if n != 3 || string(buf[:n]) != "abc" || time.Since(start) == 0 {
			t.Errorf("%q, %v", buf[:n], err)
		}
	})
}
