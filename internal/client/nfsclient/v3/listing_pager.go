package v3

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
)

// pager asks for the pages of a directory, and learns from each the size and the procedure for the
// next. One goroutine at a time uses it.
type pager struct {
	fs    *FS
	dir   vfs.Handle
	plus  bool          // by READDIRPLUS
	size  uint32        // of the next page
	most  uint32        // the largest size
	fixed bool          // most is the caller's: refusals do not make pages larger
	slow  time.Duration // how long the page took for which the size was halved last
}

func newPager(f *FS, dir vfs.Handle, want vfs.Mask, maxBytes uint32) pager {
	most := min(max(cmp.Or(maxBytes, f.opt.MaxCount, maxPage), minPage), maxPage)
	return pager{
		fs: f, dir: dir, plus: want&^vfs.MaskFileID != 0,
		size: min(most, DefaultPage), most: most, fixed: maxBytes != 0,
	}
}

// fetch fills p with the page after pos. After an error p holds nothing.
func (g *pager) fetch(ctx context.Context, pos vfs.Pos, p *page) error {
	for try := 0; ; try++ {
		g.plus = g.plus && !g.fs.noPlus.Load()
		err := g.request(ctx, pos, p)
		if err == nil {
			if err := p.scan(); err != nil {
				defer p.release()
				return &ReplyError{Proc: p.proc(), Err: err}
			}
			g.adapt(p.reply.Took, p.bytes)
			return nil
		}
		p.release()
		if try == maxConcessions || ctx.Err() != nil || !g.concede(err) {
			return err
		}
	}
}

// request makes the call, and gives up a large page that takes too long.
func (g *pager) request(ctx context.Context, pos vfs.Pos, p *page) (err error) {
	if g.size > smallPage {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, pagePatience)
		defer cancel()
	}
	*p = page{plus: g.plus}
	if g.plus {
		p.reply, err = g.readdirplus(ctx, pos, p)
	} else {
		p.reply, err = g.readdir(ctx, pos, p)
	}
	return err
}

// concede reports whether a page that was refused with err is to be asked for in another way, and
// chooses that way.
func (g *pager) concede(err error) bool {
	switch {
	case g.plus && lacking(err):
		g.fs.noPlus.Store(true)
	case errors.Is(err, vfs.ErrTooSmall) && g.grow():
	case g.plus && (errors.Is(err, vfs.ErrTooSmall) || errors.Is(err, vfs.ErrBusy) || errors.Is(err, vfs.ErrServerFault)):
		// Names alone take less space, and the server need not look at the objects. One
		// object that is on tape, or damaged, makes it refuse the whole page.
		g.plus = false
	case tooLate(err) && g.size > smallPage:
		g.most = max(g.size/2, smallPage)
		g.size = smallPage
	default:
		return false
	}
	return true
}

// lacking reports whether err says that the server lacks a procedure.
func lacking(err error) bool {
	if a, ok := errors.AsType[*oncrpc.AcceptError](err); ok {
		return a.Stat == oncrpc.ProcUnavail
	}
	return errors.Is(err, vfs.ErrNotSupp)
}

// tooLate reports whether err says that no answer came in time. The caller has checked that its own
// context has not ended.
func tooLate(err error) bool {
	return errors.Is(err, oncrpc.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
}

// grow makes the next page larger than those that the server has refused. It reports whether it could.
func (g *pager) grow() bool {
	if g.fixed || g.size >= maxPage {
		return false
	}
	g.size = min(2*g.size, maxPage)
	g.most = max(g.most, g.size)
	return true
}

// adapt chooses the size of the next page from the time and the size of this one.
func (g *pager) adapt(took time.Duration, bytes int) {
	switch {
	case took > slowPage:
		if g.size <= smallPage || g.slow != 0 && took > g.slow/4*3 {
			return
		}
		g.size = max(g.size/2, smallPage)
		g.most, g.slow = g.size, took
	case took > quickPage || bytes < int(g.size/2):
		// The server does not use the whole size, so a larger one gains nothing.
	default:
		g.size = min(2*g.size, g.most)
	}
}

func (g *pager) readdir(ctx context.Context, pos vfs.Pos, p *page) (oncrpc.Reply, error) {
	args := nfs3.READDIR3args{
		Dir:        fh(&g.dir),
		Cookie:     pos.Cookie,
		Cookieverf: nfs3.Cookieverf3(pos.Verf),
		Count:      g.size,
	}
	return g.fs.do(ctx, nfs3.NFSPROC3_READDIR, &args, p)
}
