package v3suite

import (
	"strings"

	"github.com/nfsbox/nfsbox/proto/nfs3"
)

// maxTransfer bounds what one READ or WRITE is made to carry, on servers that take
// more.
const maxTransfer = 4 << 20

var readTests = []test{
	{name: "eof", run: func(e *env) {
		h := e.file(e.dir, "f", "0123456789")
		for _, r := range []struct {
			off  uint64
			n    uint32
			want string
			eof  bool
		}{
			{0, 5, "01234", false}, {5, 4, "5678", false}, {5, 6, "56789", true}, {0, 100, "0123456789", true},
			{10, 1, "", true}, {11, 1, "", true}, {1 << 40, 10, "", true},
		} {
			res := e.read(h, r.off, r.n)
			e.ok(res.Status)
			if got := string(res.Resok.Data); got != r.want || res.Resok.Eof != r.eof || int(res.Resok.Count) != len(got) {
				e.Errorf("READ of %d at %d: %q, count %d, eof %v; want %q, eof %v", r.n, r.off, got, res.Resok.Count, res.Resok.Eof, r.want, r.eof)
			}
			e.post("READ", &res.Resok.FileAttributes, h)
		}
	}},
	{name: "up-to-the-end", run: func(e *env) {
		// "If count is such that the last byte is read, eof is TRUE."
		h := e.file(e.dir, "f", "0123456789")
		if res := e.read(h, 0, 10); res.Status != nfs3.NFS3_OK || string(res.Resok.Data) != "0123456789" || !res.Resok.Eof {
			e.Errorf("READ of all 10 bytes: %v %q, eof %v", res.Status, res.Resok.Data, res.Resok.Eof)
		}
	}},
	{name: "count-of-zero", run: func(e *env) {
		h := e.file(e.dir, "f", "0123456789")
		for _, off := range []uint64{0, 4, 10, 11} {
			res := e.read(h, off, 0)
			e.ok(res.Status)
			// At the end, "nothing asked for" and "nothing there" are both true.
			if res.Resok.Count != 0 || len(res.Resok.Data) != 0 || res.Resok.Eof && off < 10 {
				e.Errorf("READ of nothing at %d: count %d, %q, eof %v", off, res.Resok.Count, res.Resok.Data, res.Resok.Eof)
			}
		}
	}},
	{name: "beyond-rtmax", run: func(e *env) {
		// "The server may return fewer bytes", and must not return more.
		info := e.fsinfo(e.dir)
		e.ok(info.Status)
		rtmax := info.Resok.Rtmax
		if rtmax > maxTransfer {
			return
		}
		h := e.file(e.dir, "f", "")
		e.ok(e.setattr(h, size(uint64(rtmax)*2)).Status)
		res := e.read(h, 0, rtmax+4096)
		e.ok(res.Status)
		if n := res.Resok.Count; n == 0 || res.Resok.Eof || int(n) != len(res.Resok.Data) {
			e.Errorf("READ of more than rtmax, %d: count %d, %d bytes, eof %v", rtmax, n, len(res.Resok.Data), res.Resok.Eof)
		}
	}},
	{name: "offset-overflow", run: func(e *env) {
		h := e.file(e.dir, "f", "data")
		// There is nothing there; whether that is an end or an error is left open.
		res := e.read(h, 1<<64-2, 10)
		if e.gotStatus(res.Status, nfs3.NFS3_OK, nfs3.NFS3ERR_INVAL) && res.Status == nfs3.NFS3_OK && len(res.Resok.Data) != 0 {
			e.Errorf("%d bytes at the end of all offsets", len(res.Resok.Data))
		}
	}},
	{name: "hole", run: func(e *env) {
		h := e.file(e.dir, "f", "")
		e.ok(e.write(h, 100_000, "end", nfs3.FILE_SYNC).Status)
		e.content("a file with a hole", h, strings.Repeat("\x00", 100_000)+"end")
	}},
	{name: "not-a-file", run: func(e *env) {
		// ISDIR is what most servers say of a directory; the RFC has INVAL.
		res := e.read(e.mustMkdir(e.dir, "d"), 0, 10)
		e.gotStatus(res.Status, nfs3.NFS3ERR_ISDIR, nfs3.NFS3ERR_INVAL)
		e.gotStatus(e.read(e.mustSymlink(e.dir, "l", "x"), 0, 10).Status, nfs3.NFS3ERR_INVAL)
		fifo := e.mknod(e.dir, "p", nfs3.Mknoddata3{Type: nfs3.NF3FIFO, PipeAttributes: mode(0o666)})
		e.ok(fifo.Status)
		e.gotStatus(e.read(e.made(&fifo.Resok.Obj, e.dir, "p"), 0, 10).Status, nfs3.NFS3ERR_INVAL)
	}},
}
