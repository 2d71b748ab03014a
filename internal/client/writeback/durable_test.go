package writeback

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/client/pace"
	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/testkit/need"
	"github.com/nfsbox/nfsbox/vfs"
)

// answers edits what the FS below answers.
type answers struct {
	vfs.FS
	caller *vfs.Caller
	edit   *edits
}

type edits struct {
	mu     sync.Mutex
	write  func(c *vfs.Caller, off uint64, p []byte, w *vfs.Written) error
	commit func(w *vfs.Written) error
}

type answersFile struct {
	vfs.File
	fs *answers
}

func (a *answers) As(c *vfs.Caller) vfs.FS { return &answers{FS: a.FS.As(c), caller: c, edit: a.edit} }

func (a *answers) Open(ctx context.Context, at vfs.At, how *vfs.OpenHow) (vfs.File, vfs.Opened, error) {
	f, opened, err := a.FS.Open(ctx, at, how)
	if err != nil {
		return nil, opened, err
	}
	return &answersFile{f, a}, opened, nil
}

func (f *answersFile) WriteAt(ctx context.Context, p []byte, off uint64, how vfs.Stability, w *vfs.Written) (int, error) {
	n, err := f.File.WriteAt(ctx, p, off, how, w)
	e := f.fs.edit
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil && e.write != nil {
		if err = e.write(f.fs.caller, off, p, w); err != nil {
			n = 0
		}
	}
	return n, err
}

func (f *answersFile) Commit(ctx context.Context, off, n uint64, w *vfs.Written) error {
	err := f.File.Commit(ctx, off, n, w)
	e := f.fs.edit
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil && e.commit != nil {
		err = e.commit(w)
	}
	return err
}

func newAnswers(t *testing.T, mem memfs.Options, opt Options) (*rig, *edits) {
	r := newRig(t, mem, opt)
	e := new(edits)
	r.over(&answers{FS: r.below, edit: e})
	return r, e
}

// TestEndlessFlips: a server that changes its verifier all the time stores
// nothing, and that ends in an error.
func TestEndlessFlips(t *testing.T) {
	var n uint64
	flip := func(w *vfs.Written) {
		n++
		binary.BigEndian.PutUint64(w.Verf[:], n)
	}
	for name, set := range map[string]func(*edits){
		"with each WRITE": func(e *edits) {
			e.write = func(_ *vfs.Caller, _ uint64, _ []byte, w *vfs.Written) error { flip(w); return nil }
		},
		"with each COMMIT": func(e *edits) { e.commit = func(w *vfs.Written) error { flip(w); return nil } },
		"with each reply": func(e *edits) {
			e.write = func(_ *vfs.Caller, _ uint64, _ []byte, w *vfs.Written) error { flip(w); return nil }
			e.commit = func(w *vfs.Written) error { flip(w); return nil }
		},
		"COMMIT's is another": func(e *edits) { e.commit = func(w *vfs.Written) error { w.Verf[0] ^= 1; return nil } },
	} {
		t.Run(name, func(t *testing.T) {
			const size = 40_000
			r, e := newAnswers(t, memfs.Options{WriteMax: 4096}, Options{})
			set(e)
			f, _ := r.open("f", vfs.OpenHow{})
			accepted, err := f.WriteAt(t.Context(), pattern(size), 0, vfs.Unstable, new(vfs.Written))
			if err != nil && !errors.Is(err, vfs.ErrIO) {
				t.Errorf("WriteAt: %v", err)
			}
			for range 2 {
				if err := r.commit(f); !errors.Is(err, vfs.ErrIO) {
					t.Errorf("Commit: %v", err)
				}
			}
			if err := f.Close(t.Context()); !errors.Is(err, vfs.ErrIO) {
				t.Errorf("Close: %v", err)
			}
			s := r.fs.Stats()
			if s.BytesLost != uint64(accepted) || s.Resent > maxRounds*size || s.VerifierChanges == 0 {
				t.Errorf("%+v", s)
			}
			if w := r.count("write"); w > (maxRounds+1)*(size/4096+1) {
				t.Errorf("%d WRITEs", w)
			}
		})
	}
}

// TestWriteVerifier: the verifier of a WRITE alone tells of a restart, and what
// was sent before is sent again without a COMMIT.
func TestWriteVerifier(t *testing.T) {
	ctx := t.Context()
	r := newRig(t, memfs.Options{WriteMax: 4096}, Options{})
	f, h := r.open("f", vfs.OpenHow{})
	data := pattern(40_960)
	r.write(f, 0, data[:20_480])
	_, err := r.fs.GetAttr(ctx, h, vfs.MaskSize) // sends it
	r.ok(err)
	r.below.Restart()
	r.write(f, 20_480, data[20_480:])
	_, err = r.fs.GetAttr(ctx, h, vfs.MaskSize)
	r.ok(err)
	if w, c := r.count("write"), r.count("commit"); w != 15 || c != 0 {
		t.Errorf("%d WRITEs and %d COMMITs, want 15 and 0", w, c)
	}
	if s := r.fs.Stats(); s.Resent != 20_480 || s.VerifierChanges != 1 {
		t.Errorf("%+v", s)
	}
	r.ok(f.Close(ctx))
	if c := r.count("commit"); c != 1 {
		t.Errorf("%d COMMITs", c)
	}
	r.wantBelow(h, data)
}

// TestLateReply: the reply to a WRITE of before a restart comes behind one of
// after it. It is not taken for another restart.
func TestLateReply(t *testing.T) {
	for _, known := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, memfs.Options{WriteMax: 4096}, Options{})
			slow := &slowReply{FS: r.below}
			r.over(slow)
			f, h := r.open("f", vfs.OpenHow{})
			data := pattern(3 * 4096)
			if known {
				r.write(f, 8192, data[8192:])
				synctest.Wait()
			}
			late := make(chan struct{})
			slow.wrote = func(off uint64) {
				if off == 0 {
					<-late
				}
			}
			r.write(f, 0, data[:4096])
			synctest.Wait()
			slow.wrote = nil
			r.below.Restart()
			r.write(f, 4096, data[4096:8192])
			synctest.Wait()
			close(late)
			synctest.Wait()
			want := Stats{Resent: 4096}
			if known {
				want = Stats{Resent: 8192, VerifierChanges: 1}
			} else {
				r.write(f, 8192, data[8192:])
			}
			r.ok(f.Close(t.Context()))
			if s := r.fs.Stats(); s.Resent != want.Resent || s.VerifierChanges != want.VerifierChanges {
				t.Errorf("known %v: %+v, want %+v", known, s, want)
			}
			r.wantBelow(h, data)
		})
	}
}

// TestShortStableTail: of a WRITE in two parts the second is stable, the first is
// not, and the server forgets that.
func TestShortStableTail(t *testing.T) {
	r, e := newAnswers(t, memfs.Options{WriteMax: 3000}, Options{})
	e.write = func(_ *vfs.Caller, off uint64, _ []byte, w *vfs.Written) error {
		if off%4096 != 0 {
			w.Committed = vfs.FileSync
		}
		return nil
	}
	f, h := r.open("f", vfs.OpenHow{})
	r.write(f, 0, pattern(8192))
	_, err := r.fs.GetAttr(t.Context(), h, vfs.MaskSize)
	r.ok(err)
	r.below.Restart()
	r.ok(f.Close(t.Context()))
	r.wantBelow(h, pattern(8192))
}

// TestStableAnswers: what is stable at once is let go at once.
func TestStableAnswers(t *testing.T) {
	for _, how := range []vfs.Stability{vfs.DataSync, vfs.FileSync} {
		r, e := newAnswers(t, memfs.Options{WriteMax: 4096}, Options{})
		e.write = func(_ *vfs.Caller, _ uint64, _ []byte, w *vfs.Written) error { w.Committed = how; return nil }
		f, h := r.open("f", vfs.OpenHow{})
		r.write(f, 0, pattern(40_960))
		_, err := r.fs.GetAttr(t.Context(), h, vfs.MaskSize)
		r.ok(err)
		if n := r.fs.Dirty(); n != 0 {
			t.Errorf("%v: %d dirty bytes", how, n)
		}
		r.ok(f.Close(t.Context()))
		if c := r.count("commit"); c != 0 {
			t.Errorf("%v: %d COMMITs", how, c)
		}
	}
}

// passingErrors are those for which a call is made again.
var passingErrors = map[string]error{
	"busy":            vfs.ErrBusy,
	"unknown outcome": fmt.Errorf("connection lost: %w", vfs.ErrUnknownOutcome),
	"unknown status":  errors.Join(vfs.ErrNoSpace, vfs.ErrUnknownOutcome),
	"time-out":        context.DeadlineExceeded,
	"soft time-out":   errors.Join(syscall.EIO, &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}),
	"reset":           &net.OpError{Op: "read", Err: syscall.ECONNRESET},
	"end of stream":   io.ErrUnexpectedEOF,
}

// TestPassingErrors: they cost time, and nothing else.
func TestPassingErrors(t *testing.T) {
	for _, op := range []string{"write", "commit"} {
		for name, fault := range passingErrors {
			t.Run(op+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, memfs.Options{WriteMax: 4096}, Options{})
					f, h := r.open("f", vfs.OpenHow{})
					start := time.Now()
					r.setFault(func(_ context.Context, o string) error {
						if o == op && time.Since(start) < 3*time.Minute {
							return fault
						}
						return nil
					})
					data := pattern(100_000)
					r.write(f, 0, data)
					r.ok(r.commit(f))
					took := time.Since(start)
					if took < 3*time.Minute || took > 3*time.Minute+2*retryMax {
						t.Errorf("took %v", took)
					}
					if s := r.fs.Stats(); s.Retries == 0 || s.Retries > 10_000 || s.BytesLost != 0 {
						t.Errorf("%+v", s)
					}
					r.ok(r.commit(f))
					start = time.Now()
					r.write(f, 0, data[50_000:]) // together longer than the patience
					r.ok(f.Close(t.Context()))
					copy(data, data[50_000:])
					r.wantBelow(h, data)
				})
			})
		}
	}
}

// TestOutage: when the patience has ended there is one error, and all that was
// accepted and is not stable is counted, and the rest of it does not take a
// patience each.
func TestOutage(t *testing.T) {
	for _, op := range []string{"write", "commit"} {
		for _, hangs := range []bool{false, true} {
			t.Run(fmt.Sprint(op, "/hangs ", hangs), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					const patience = time.Minute
					r := newRig(t, memfs.Options{WriteMax: 4096}, Options{Patience: patience})
					f, _ := r.open("f", vfs.OpenHow{})
					r.setFault(func(ctx context.Context, o string) error {
						if o != op {
							return nil
						}
						if hangs {
							<-ctx.Done()
							return fmt.Errorf("%w: %w", vfs.ErrUnknownOutcome, ctx.Err())
						}
						return vfs.ErrBusy
					})
					start := time.Now()
					const size = 4096 * 100
					r.write(f, 0, pattern(size))
					first := r.commit(f)
					if first == nil || !errors.Is(first, vfs.ErrBusy) && !errors.Is(first, vfs.ErrUnknownOutcome) {
						t.Errorf("Commit: %v", first)
					}
					if err := f.Close(t.Context()); !errors.Is(err, first) && err.Error() != first.Error() {
						t.Errorf("Close: %v, want %v", err, first)
					}
					if took := time.Since(start); took < patience-retryMax || took > 4*patience {
						t.Errorf("took %v", took)
					}
					if s := r.fs.Stats(); s.BytesLost != size {
						t.Errorf("%+v", s)
					}
				})
			})
		}
	}
}

// TestSlowLink: bytes that take longer than the patience to go over a slow link are not given
// up while the server answers.
func TestSlowLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memfs.Options{WriteMax: 4096}, Options{Patience: time.Minute})
		f, h := r.open("f", vfs.OpenHow{})
		link := make(chan struct{}, 1)
		r.setFault(func(ctx context.Context, op string) error {
			if op != "write" {
				return nil
			}
			unknown := func() error { return fmt.Errorf("%w: %w", vfs.ErrUnknownOutcome, ctx.Err()) }
			select {
			case link <- struct{}{}:
			case <-ctx.Done():
				return unknown()
			}
			defer func() { <-link }()
			select {
			case <-time.After(10 * time.Second):
				return nil
			case <-ctx.Done():
				return unknown()
			}
		})
		const size = 4096 * 100
		r.write(f, 0, pattern(size))
		if err := r.commit(f); err != nil {
			t.Errorf("Commit: %v", err)
		}
		r.ok(f.Close(t.Context()))
		r.wantBelow(h, pattern(size))
		if s := r.fs.Stats(); s.BytesLost != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// limited makes each WRITE wait for its turn in a limiter that admits one at a time, and then run
// admitted.
func (r *rig) limited(admitted func(ctx context.Context) error) {
	limiter := pace.New(pace.Options{Max: [pace.Classes]int{1, 1, 1}})
	r.setFault(func(ctx context.Context, op string) error {
		if op != "write" {
			return nil
		}
		if err := limiter.Enter(ctx, pace.Write); err != nil {
			return fmt.Errorf("not sent: %w", err)
		}
		defer limiter.Leave(pace.Write, 0, 0, pace.Gone)
		return admitted(ctx)
	})
}

// TestSlowLinkManyFiles: bytes whose first WRITE waits for its turn longer than the patience are
// not given up, though nothing was ever answered about their files.
func TestSlowLinkManyFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memfs.Options{WriteMax: 4096}, Options{Patience: time.Minute})
		r.limited(func(ctx context.Context) error {
			select {
			case <-time.After(10 * time.Second):
				return nil
			case <-ctx.Done():
				return fmt.Errorf("%w: %w", vfs.ErrUnknownOutcome, ctx.Err())
			}
		})
		var files sync.WaitGroup
		for i := range 100 {
			files.Go(func() {
				f, _ := r.open(fmt.Sprint(i), vfs.OpenHow{})
				r.write(f, 0, pattern(4096))
				if err := f.Close(t.Context()); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		}
		files.Wait()
		if s := r.fs.Stats(); s.BytesLost != 0 || s.Retries != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestPatienceBeginsWithTurn: a WRITE that nobody answers is given up when the patience has passed
// since it was admitted, and the error names the deadline.
func TestPatienceBeginsWithTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience, before, each = time.Minute, 100, 10 * time.Second
		r := newRig(t, memfs.Options{WriteMax: 4096}, Options{Patience: patience})
		writes := 0
		r.limited(func(ctx context.Context) error {
			if writes++; writes <= before {
				time.Sleep(each)
				return nil
			}
			<-ctx.Done()
			return fmt.Errorf("%w: %w", vfs.ErrUnknownOutcome, ctx.Err())
		})
		start := time.Now()
		for i := range before {
			f, _ := r.open(fmt.Sprint(i), vfs.OpenHow{})
			r.write(f, 0, pattern(4096))
			defer func() { r.ok(f.Close(t.Context())) }()
		}
		synctest.Wait()
		f, _ := r.open("f", vfs.OpenHow{})
		r.write(f, 0, pattern(4096))
		if err := f.Close(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: %v, want %v", err, context.DeadlineExceeded)
		}
		if took := time.Since(start); took != before*each+patience {
			t.Errorf("took %v, want %v", took, before*each+patience)
		}
	})
}

// TestOutageManyFiles: if the server does not answer at all, files whose WRITEs wait for their turn
// are given up as soon as the first.
func TestOutageManyFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const patience = time.Minute
		r := newRig(t, memfs.Options{WriteMax: 4096}, Options{Patience: patience})
		r.limited(func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("%w: %w", vfs.ErrUnknownOutcome, ctx.Err())
		})
		start := time.Now()
		var files sync.WaitGroup
		for i := range 100 {
			files.Go(func() {
				f, _ := r.open(fmt.Sprint(i), vfs.OpenHow{})
				r.write(f, 0, pattern(4096))
				if err := f.Close(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Close: %v", err)
				}
				if took := time.Since(start); took != patience {
					t.Errorf("given up after %v, want %v", took, patience)
				}
			})
		}
		files.Wait()
	})
}

// TestPatienceBeginsAnew: calls that failed for bytes which were given up since take
// no patience from those that come later.
func TestPatienceBeginsAnew(t *testing.T) {
	for _, op := range []string{"write", "commit"} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, memfs.Options{}, Options{Patience: time.Minute})
			f, h := r.open("f", vfs.OpenHow{})
			g, _ := r.open("f", vfs.OpenHow{})
			refuse := func(times int64) {
				var n atomic.Int64
				r.setFault(func(_ context.Context, o string) error {
					if o == op && n.Add(1) <= times {
						return vfs.ErrBusy
					}
					return nil
				})
			}
			refuse(math.MaxInt64)
			r.write(f, 0, []byte("abc"))
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := f.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Close: %v", err)
			}
			time.Sleep(time.Hour)
			refuse(1)
			r.write(g, 0, []byte("def"))
			if err := r.commit(g); err != nil {
				t.Errorf("one %s that was refused for now, an hour later: %v", op, err)
			}
			r.ok(g.Close(t.Context()))
			r.wantBelow(h, []byte("def"))
		})
	}
}

// TestNoSpace: the bytes whose WRITE is refused are given up, all others are
// sent, and everybody is told the first error.
func TestNoSpace(t *testing.T) {
	r, e := newAnswers(t, memfs.Options{WriteMax: 4096}, Options{})
	accepted := make(chan struct{})
	e.write = func(_ *vfs.Caller, off uint64, _ []byte, _ *vfs.Written) error {
		switch off {
		case 4096:
			return vfs.ErrNoSpace
		case 8192:
			<-accepted
			return vfs.ErrQuota
		}
		return nil
	}
	f, h := r.open("f", vfs.OpenHow{})
	data := pattern(6 * 4096)
	r.write(f, 4096, data[4096:8192])
	_, err := r.fs.GetAttr(t.Context(), h, vfs.MaskSize)
	r.ok(err)
	if err := r.fs.Sync(t.Context(), h); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("Sync: %v", err)
	}
	g, _ := r.open("f", vfs.OpenHow{})
	r.write(g, 0, data[:4096])
	r.write(g, 8192, data[8192:])
	close(accepted)
	for _, err := range []error{r.commit(f), f.Close(t.Context())} {
		if !errors.Is(err, vfs.ErrNoSpace) {
			t.Errorf("the first error is NOSPC: %v", err)
		}
	}
	for _, err := range []error{r.commit(g), g.Close(t.Context())} {
		if !errors.Is(err, vfs.ErrQuota) {
			t.Errorf("the later file's error is DQUOT: %v", err)
		}
	}
	if s := r.fs.Stats(); s.BytesLost != 2*4096 {
		t.Errorf("%+v", s)
	}
	got := make([]byte, len(data))
	below, _, err := r.below.Open(t.Context(), vfs.At{H: h}, &vfs.OpenHow{Access: vfs.ShareRead})
	r.ok(err)
	_, _, err = vfs.ReadFull(t.Context(), below, got, 0)
	r.ok(err)
	r.ok(below.Close(t.Context()))
	if !bytes.Equal(got[:4096], data[:4096]) || !bytes.Equal(got[12288:], data[12288:]) {
		t.Error("the other bytes are not there")
	}
}

// TestStableWriteAfterFailure: a stable write waits for the dirty bytes that it
// overlaps, and hears that their WRITE has failed.
func TestStableWriteAfterFailure(t *testing.T) {
	r, e := newAnswers(t, memfs.Options{WriteMax: 4096}, Options{})
	e.write = func(_ *vfs.Caller, off uint64, _ []byte, _ *vfs.Written) error {
		if off == 0 {
			return vfs.ErrNoSpace
		}
		return nil
	}
	f, _ := r.open("f", vfs.OpenHow{})
	r.write(f, 0, []byte("abc"))
	if n, err := f.WriteAt(t.Context(), []byte("x"), 1, vfs.FileSync, new(vfs.Written)); n != 0 || !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("%d, %v", n, err)
	}
	if w := r.count("write"); w != 1 {
		t.Errorf("%d WRITEs", w)
	}
	if err := f.Close(t.Context()); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("Close: %v", err)
	}
}

// TestCommitShare: COMMITs follow the WRITEs before the bound is reached.
func TestCommitShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const bound = 4 << 20
		r := newRig(t, memfs.Options{WriteMax: 64 << 10}, Options{MaxDirty: bound})
		f, _ := r.open("f", vfs.OpenHow{})
		for off := uint64(0); off < bound*3/4; off += 64 << 10 {
			r.write(f, off, pattern(64<<10))
			synctest.Wait()
		}
		if c, d := r.count("commit"), r.fs.Dirty(); c != 3 || d != 0 {
			t.Errorf("%d COMMITs, %d dirty bytes", c, d)
		}
		r.ok(f.Close(t.Context()))
	})
}

// TestRealErrors end a WRITE or COMMIT at once.
func TestRealErrors(t *testing.T) {
	for _, op := range []string{"write", "commit"} {
		for _, fault := range []vfs.Status{vfs.ErrIO, vfs.ErrNoSpace, vfs.ErrQuota, vfs.ErrROFS, vfs.ErrAccess, vfs.ErrStale, vfs.ErrFBig} {
			r := newRig(t, memfs.Options{WriteMax: 4096}, Options{})
			f, _ := r.open("f", vfs.OpenHow{})
			r.setFault(func(_ context.Context, o string) error {
				if o == op {
					return fault
				}
				return nil
			})
			r.write(f, 0, pattern(1000))
			if err := r.commit(f); !errors.Is(err, fault) {
				t.Errorf("%s: %v, want %v", op, err, fault)
			}
			if n, err := f.WriteAt(t.Context(), []byte("x"), 0, vfs.Unstable, new(vfs.Written)); n != 0 || !errors.Is(err, fault) {
				t.Errorf("%s: WriteAt: %d, %v, want %v", op, n, err, fault)
			}
			if err := f.Close(t.Context()); !errors.Is(err, fault) {
				t.Errorf("%s: Close: %v, want %v", op, err, fault)
			}
			if s := r.fs.Stats(); s.BytesLost != 1000 || s.Retries != 0 {
				t.Errorf("%s: %v: %+v", op, fault, s)
			}
		}
	}
}

// TestAge: what nobody commits is stable after maxAge, and then nothing runs.
func TestAge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memfs.Options{}, Options{})
		f, h := r.open("f", vfs.OpenHow{})
		r.write(f, 0, []byte("abc"))
		time.Sleep(maxAge / 2)
		r.write(f, 3, []byte("def"))
		if n := r.count("write"); n != 0 {
			t.Errorf("%d WRITEs", n)
		}
		time.Sleep(maxAge/2 + time.Millisecond)
		if w, c := r.count("write"), r.count("commit"); w != 1 || c != 1 || r.fs.Dirty() != 0 {
			t.Errorf("%d WRITEs, %d COMMITs, %d dirty bytes", w, c, r.fs.Dirty())
		}
		time.Sleep(time.Hour)
		if w, c := r.count("write"), r.count("commit"); w != 1 || c != 1 {
			t.Errorf("%d WRITEs, %d COMMITs an hour later", w, c)
		}
		// Under steady writing no byte gets older than maxAge and one flush.
		for i := range 100 {
			r.write(f, uint64(6+i), []byte{byte(i)})
			time.Sleep(maxAge / 10)
		}
		if c := r.count("commit"); c < 9 || c > 13 {
			t.Errorf("%d COMMITs in 50 s", c)
		}
		time.Sleep(maxAge)
		want := append([]byte("abcdef"), make([]byte, 100)...)
		for i := range 100 {
			want[6+i] = byte(i)
		}
		r.wantBelow(h, want)
		r.ok(f.Close(t.Context()))
	})
}

// TestAgeDuringFlush: what comes while a flush is under way is flushed as well.
func TestAgeDuringFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFar(t, time.Second, 1e6, Options{})
		f, h := r.open("f", vfs.OpenHow{})
		r.write(f, 0, []byte("abc"))
		time.Sleep(maxAge + time.Second + time.Second/2)
		r.write(f, 3, []byte("def")) // COMMIT is in flight
		if c := r.count("commit"); c != 0 {
			t.Error("the test is of no use")
		}
		time.Sleep(maxAge + 3*time.Second)
		if n := r.fs.Dirty(); n != 0 {
			t.Errorf("%d bytes are dirty", n)
		}
		r.wantBelow(h, []byte("abcdef"))
		r.ok(f.Close(t.Context()))
	})
}

// TestAgeFails: a flush behind that fails is told at the next call, and what it
// could not make stable is given up.
func TestAgeFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memfs.Options{}, Options{})
		f, _ := r.open("f", vfs.OpenHow{})
		r.setFault(func(_ context.Context, op string) error {
			if op == "commit" {
				return vfs.ErrIO
			}
			return nil
		})
		r.write(f, 0, []byte("abc"))
		time.Sleep(time.Hour)
		if c := r.count("commit"); c != 1 {
			t.Errorf("%d COMMITs", c)
		}
		if s := r.fs.Stats(); s.BytesLost != 3 || s.Dirty != 0 {
			t.Errorf("%+v", s)
		}
		if err := f.Close(t.Context()); !errors.Is(err, vfs.ErrIO) {
			t.Errorf("Close: %v", err)
		}
	})
}

// timeToWrite is how long it takes to write size bytes, in steps, and to close the file.
func (r *rig) timeToWrite(size uint64, step int) time.Duration {
	r.t.Helper()
	f, _ := r.open("f", vfs.OpenHow{})
	p := pattern(step)
	start := time.Now()
	for off := uint64(0); off < size; off += uint64(step) {
		r.write(f, off, p)
	}
	r.ok(f.Close(r.t.Context()))
	return time.Since(start)
}

// TestWriterFillsTheLine: a single writer is as fast as the link, COMMITs and the
// bound included.
func TestWriterFillsTheLine(t *testing.T) {
	need.Speed(t, "a rate in a model; TestSlowLinkManyFiles has the goroutines")
	for _, bound := range []int64{0, 16 << 20} {
		for _, delay := range []time.Duration{10 * ms, ms / 10} {
			synctest.Test(t, func(t *testing.T) {
				const size, bandwidth = 96 << 20, 100e6
				r := newFar(t, delay, bandwidth, Options{MaxDirty: bound})
				share := size / bandwidth / r.timeToWrite(size, 32<<10).Seconds()
				t.Logf("bound %d, %v: %.0f%% of the bandwidth, %d WRITEs, %d COMMITs", bound, delay, 100*share, r.count("write"), r.count("commit"))
				if share < 0.8 {
					t.Errorf("bound %d, %v: %.0f%% of the bandwidth", bound, delay, 100*share)
				}
				if w := r.count("write"); w > size/unit*11/10 {
					t.Errorf("%d WRITEs for %d", w, size/unit)
				}
			})
		}
	}
}

// TestFarWriter: over a long way a writer fills the line, or has as many WRITEs in flight
// as it may, COMMITs and the bound included, though what is dirty must wait for two
// round trips.
func TestFarWriter(t *testing.T) {
	need.Speed(t, "a rate in a model")
	const size, trip = 256 << 20, 100 * ms
	for _, bandwidth := range []float64{200e6, 500e6} {
		synctest.Test(t, func(t *testing.T) {
			r := newFarOf(t, 1<<20, trip, bandwidth, Options{})
			took := r.timeToWrite(size, 1<<20)
			// A round trip for so many WRITEs, and one for the last COMMIT.
			least := max(time.Duration(size/bandwidth*1e9), trip*size/(maxInFlight<<20)) + trip
			t.Logf("%.0e bytes a second: %v, %v at the least, %d COMMITs", bandwidth, took, least, r.count("commit"))
			if took > least+least/5 {
				t.Errorf("%.0e bytes a second: %v for what takes %v at the least", bandwidth, took, least)
			}
		})
	}
}

// TestCommitErrorBehind: a COMMIT behind that fails is told to a caller that
// commits meanwhile, though a later COMMIT has succeeded before it.
func TestCommitErrorBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memfs.Options{WriteMax: 4096}, Options{MaxDirty: 64 << 10})
		f, _ := r.open("f", vfs.OpenHow{})
		var commits atomic.Int32
		r.setFault(func(_ context.Context, op string) error {
			if op == "commit" && commits.Add(1) == 1 {
				time.Sleep(time.Second)
				return vfs.ErrIO
			}
			return nil
		})
		r.write(f, 0, pattern(16<<10))
		synctest.Wait()
		if n := commits.Load(); n != 1 {
			t.Fatalf("%d COMMITs behind a share", n)
		}
		r.write(f, 16<<10, pattern(4096))
		var w vfs.Written
		if err := f.Commit(t.Context(), 0, 0, &w); !errors.Is(err, vfs.ErrIO) {
			t.Errorf("Commit: %v, of bytes of which a COMMIT has failed", err)
		}
		if err := f.Close(t.Context()); !errors.Is(err, vfs.ErrIO) {
			t.Errorf("Close: %v", err)
		}
	})
}

// TestOldestFirst: at the bound the oldest dirty bytes are made stable, and the
// writer goes on as soon as there is room.
func TestOldestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memfs.Options{WriteMax: 4096}, Options{MaxDirty: 64 << 10})
		var files []vfs.File
		for i := range 15 {
			f, _ := r.open(fmt.Sprint(i), vfs.OpenHow{})
			r.write(f, 0, pattern(4000))
			files = append(files, f)
			time.Sleep(ms)
		}
		f, _ := r.open("f", vfs.OpenHow{})
		r.write(f, 0, pattern(8192))
		if c := r.count("commit"); c != 1 {
			t.Errorf("%d COMMITs", c)
		}
		if files[0].(*holeFile).n.dirty.Load() {
			t.Error("the oldest bytes are still dirty")
		}
		for _, f := range append(files, f) {
			r.ok(f.Close(t.Context()))
		}
	})
}

// TestManyWriters compete for little room, and none fails.
func TestManyWriters(t *testing.T) {
	r := newRig(t, memfs.Options{WriteMax: 4096}, Options{MaxDirty: 32 << 10})
	var wg sync.WaitGroup
	data := pattern(100_000)
	handles := make([]vfs.Handle, 16)
	for i := range handles {
		f, h := r.open(fmt.Sprint(i), vfs.OpenHow{})
		handles[i] = h
		wg.Go(func() {
			for off := 0; off < len(data); off += 700 {
				p := data[off:min(off+700, len(data))]
				if n, err := f.WriteAt(t.Context(), p, uint64(off), vfs.Unstable, new(vfs.Written)); n != len(p) || err != nil {
					t.Errorf("%d, %v", n, err)
					break
				}
			}
			if err := f.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, h := range handles {
		r.wantBelow(h, data)
	}
}

// TestAlignment: WRITEs of a sequence are full and aligned, wherever it began,
// and a few sequences at once do not disturb one another.
func TestAlignment(t *testing.T) {
	r, e := newAnswers(t, memfs.Options{WriteMax: 4096}, Options{})
	var sent []span
	e.write = func(_ *vfs.Caller, off uint64, p []byte, _ *vfs.Written) error {
		sent = append(sent, span{off, off + uint64(len(p))})
		return nil
	}
	f, _ := r.open("f", vfs.OpenHow{})
	p := pattern(500)
	for i := range uint64(40) {
		for s := range uint64(maxTails) {
			r.write(f, 1000+s*100_000+i*500, p)
		}
	}
	r.ok(f.Close(t.Context()))
	slices.SortFunc(sent, func(a, b span) int { return int(int64(a.from) - int64(b.from)) })
	partial := 0
	for _, s := range sent {
		if s.to-s.from < 4096 {
			partial++
		}
		if s.from/4096 != (s.to-1)/4096 {
			t.Errorf("WRITE of [%d, %d)", s.from, s.to)
		}
	}
	if partial > 2*maxTails {
		t.Errorf("%d of %d WRITEs are not full", partial, len(sent))
	}
}

// TestWhoseWrites: what different callers write to one file is sent under the
// name of each.
func TestWhoseWrites(t *testing.T) {
	ctx := t.Context()
	r, e := newAnswers(t, memfs.Options{WriteMax: 4096, Mode: 0o777}, Options{})
	by := make(map[uint64]uint32)
	e.write = func(c *vfs.Caller, off uint64, p []byte, _ *vfs.Written) error {
		for i := range p {
			if c != nil {
				by[off+uint64(i)] = c.UID
			}
		}
		return nil
	}
	root, h := r.open("f", vfs.OpenHow{})
	_, err := r.fs.SetAttr(ctx, h, &vfs.SetAttr{Valid: vfs.MaskMode, Mode: 0o666}, nil)
	r.ok(err)
	var files []vfs.File
	for uid := range uint32(2) {
		f, _, err := r.fs.As(&vfs.Caller{UID: 100 + uid}).Open(ctx, vfs.At{H: h}, &vfs.OpenHow{Access: rw})
		r.ok(err)
		files = append(files, f)
	}
	for i := range uint64(100) {
		r.write(files[i%2], i*10, pattern(10))
	}
	for _, f := range append(files, root) {
		r.ok(f.Close(ctx))
	}
	for off := range uint64(1000) {
		if want := uint32(100 + off/10%2); by[off] != want {
			t.Fatalf("byte %d was written by %d, want %d", off, by[off], want)
		}
	}
}

// TestCloseGivesUpAlone: a file that is closed without waiting loses its own bytes, and the
// other file on the object neither bytes nor peace.
func TestCloseGivesUpAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memfs.Options{WriteMax: 4096}, Options{})
		f, h := r.open("f", vfs.OpenHow{})
		g, _ := r.open("f", vfs.OpenHow{})
		r.setFault(func(ctx context.Context, op string) error {
			if op == "write" {
				return vfs.ErrBusy
			}
			return nil
		})
		r.write(f, 0, bytes.Repeat([]byte("f"), 4096))
		r.write(g, 4096, bytes.Repeat([]byte("g"), 4096))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close: %v", err)
		}
		r.setFault(nil)
		r.ok(r.commit(g))
		r.ok(g.Close(t.Context()))
		if s := r.fs.Stats(); s.BytesLost != 4096 {
			t.Errorf("%+v", s)
		}
		r.wantBelow(h, append(make([]byte, 4096), bytes.Repeat([]byte("g"), 4096)...))
	})
}

// TestLostBytesAreNoHole: bytes that were accepted, and then refused, are not told as a hole.
func TestLostBytesAreNoHole(t *testing.T) {
	r := newRig(t, memfs.Options{}, Options{})
	f, _ := r.open("f", vfs.OpenHow{})
	r.ok(r.commit(f))
	r.setFault(func(_ context.Context, op string) error {
		if op == "write" {
			return vfs.ErrNoSpace
		}
		return nil
	})
	r.write(f, 0, pattern(100))
	if off, err := f.(vfs.HoleSeeker).NextHole(t.Context(), 0); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("the next hole: %d, %v, want %v", off, err, vfs.ErrNoSpace)
	}
	if err := f.Close(t.Context()); !errors.Is(err, vfs.ErrNoSpace) {
		t.Errorf("Close: %v", err)
	}
}

// TestCloseHearsOfEachCommit: of two COMMITs for the bytes of a file, both sent through another
// one, the server tells the first that it could not store them, and the second seems well. The
// file's Close tells, though nothing of it is dirty any more.
func TestCloseHearsOfEachCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const share = 4 * 4096
		r := newRig(t, memfs.Options{WriteMax: 4096}, Options{MaxDirty: commitShare * share})
		f, _ := r.open("f", vfs.OpenHow{})
		g, _ := r.open("f", vfs.OpenHow{})
		var commits atomic.Int64
		answer := make(chan struct{})
		r.setFault(func(_ context.Context, op string) error {
			if op == "commit" && commits.Add(1) == 1 {
				<-answer
				return vfs.ErrIO
			}
			return nil
		})
		r.write(f, share, pattern(4096))
		r.write(g, 0, pattern(share)) // has the first COMMIT sent behind
		synctest.Wait()
		if n := commits.Load(); n != 1 {
			t.Fatalf("%d COMMITs, want 1", n)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var w vfs.Written
		_ = g.Commit(ctx, 0, 0, &w) // the second, which waits for the first
		closed := make(chan error, 1)
		go func() { closed <- f.Close(t.Context()) }()
		synctest.Wait()
		close(answer)
		if err := <-closed; !errors.Is(err, vfs.ErrIO) {
			t.Errorf("Close: %v, want %v", err, vfs.ErrIO)
		}
		if err := g.Close(t.Context()); !errors.Is(err, vfs.ErrIO) {
			t.Errorf("Close of the other: %v, want %v", err, vfs.ErrIO)
		}
	})
}

// TestCloseFS: nothing goes on afterwards, and what is lost is told.
func TestCloseFS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memfs.Options{WriteMax: 4096}, Options{})
		f, _ := r.open("f", vfs.OpenHow{})
		r.setFault(func(ctx context.Context, op string) error {
			if op == "write" || op == "commit" {
				return vfs.ErrBusy
			}
			return nil
		})
		r.write(f, 0, pattern(10_000))
		synctest.Wait()
		if err := vfs.CloseFS(r.fs); !errors.Is(err, vfs.ErrIO) {
			t.Errorf("Close: %v", err)
		}
		if s := r.fs.Stats(); s.BytesLost != 10_000 || s.Dirty != 0 {
			t.Errorf("%+v", s)
		}
		writes := r.count("write")
		time.Sleep(time.Hour)
		if n := r.count("write"); n != writes {
			t.Errorf("%d WRITEs after Close", n-writes)
		}
		if err := f.Close(t.Context()); err == nil {
			t.Error("the file knows of nothing")
		}
	})
}
