package fileapi

import (
	"context"
	"errors"
	"io"
	"runtime"
	"time"

	"connectrpc.com/connect"

	"github.com/nfsbox/nfsbox/internal/base/fault"
	"github.com/nfsbox/nfsbox/internal/base/lines"
	pb "github.com/nfsbox/nfsbox/proto/fileapi"
	"github.com/nfsbox/nfsbox/vfs"
)

// searching is a search in progress. It is for one goroutine.
type searching struct {
	s    *Server
	p    *place
	call *call
	plan *searchPlan
	send func(*pb.SearchResponse) error

	lines    *lines.Searcher
	path     string // of the file that is searched
	selected uint64 // lines of it that were shown
	left     uint64 // bytes that may be read
	entries  uint64 // of directories
	listed   int    // memory of the pages of directories, in bytes
	held     int    // the most of it
	counts   searchCounts
	ended    pb.SearchEnd // the bound at which it ends; 0: none was reached

	waiting   []*pb.SearchLine // that are to be sent
	waitBytes int
	sent      time.Time // when something was sent last
}

// searchCounts are pb.SearchCounts.
type searchCounts struct{ files, bytes, matchedFiles, matches, failures uint64 }

func (c *searchCounts) message() *pb.SearchCounts {
	return &pb.SearchCounts{Files: c.files, Bytes: c.bytes, MatchedFiles: c.matchedFiles, Matches: c.matches, Failures: c.failures}
}

func (s *Server) newSearching(ctx context.Context, p *place, plan *searchPlan, send func(*pb.SearchResponse) error) *searching {
	r := &searching{s: s, p: p, call: requestOf(ctx).call, plan: plan, send: send, left: plan.maxBytes, sent: s.o.Now()}
	match := plan.pattern.Matcher()
	r.lines = lines.NewSearcher(plan.pattern, plan.search, func(line []byte) bool {
		return ctx.Err() == nil && match(line) // when it is cancelled, the rest of a block passes at once
	})
	return r
}

// Of the errors of a search, errEnough ends it as max_matches has it, and errSpent as the bound of bytes has it. errSend is the client's
// end: nothing can be sent any more.
var errEnough, errSpent = errors.New("enough was found"), errors.New("enough was read")

type errSend struct{ error }

func (e errSend) Unwrap() error { return e.error }

// tell sends a message.
func (r *searching) tell(m *pb.SearchResponse) error {
	if err := r.send(m); err != nil {
		return errSend{err}
	}
	r.sent = r.s.o.Now()
	return nil
}

// file searches a file of so many bytes. What is appended meanwhile is not searched.
func (r *searching) file(ctx context.Context, path string, h vfs.Handle, size uint64) error {
	f, err := r.p.openToRead(ctx, h)
	if err != nil {
		return r.failed(ctx, path, err)
	}
	defer func() { _ = f.Close(context.WithoutCancel(ctx)) }() // nothing was written
	r.path, r.selected = path, 0
	found, err := r.lines.Search(&searched{Reader: lines.NewReader(ctx, r.p, h, f, 0), r: r, left: size}, r.show)
	if err == nil || found.Bytes > 0 {
		r.counts.files++
	}
	switch _, gone := errors.AsType[errSend](err); {
	case gone:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	if err := r.found(&found); err != nil {
		return err
	}
	switch {
	case errors.Is(err, errEnough):
		r.ended = pb.SearchEnd_SEARCH_END_MATCHES
	case errors.Is(err, errSpent):
		r.ended = pb.SearchEnd_SEARCH_END_BYTES
	case err != nil:
		return r.failed(ctx, path, err)
	}
	if found.TooLong > 0 {
		return r.failed(ctx, path, leftOut(&found, r.plan.search.MaxMatch))
	}
	return nil
}

// leftOut tells of lines that are longer than what these patterns can be looked for in.
func leftOut(found *lines.Result, most int) error {
	if found.TooLong == 1 {
		return refuse(connect.CodeOutOfRange, "line %d is longer than %d bytes, and was not searched for these patterns", found.FirstTooLong, most)
	}
	return refuse(connect.CodeOutOfRange, "%d lines are longer than %d bytes, and were not searched for these patterns; line %d is the first",
		found.TooLong, most, found.FirstTooLong)
}

// found tells what the file has.
func (r *searching) found(found *lines.Result) error {
	if err := r.flush(); err != nil || found.Selected == 0 {
		return err
	}
	r.counts.matchedFiles++
	r.counts.matches += found.Selected
	if r.plan.maxMatches > 0 && r.counts.matches >= r.plan.maxMatches {
		r.ended = pb.SearchEnd_SEARCH_END_MATCHES
	}
	m := &pb.SearchFile{Matches: found.Selected, Binary: found.Binary}
	m.Path, m.RawPath = textOrRaw(r.path)
	return r.tell(&pb.SearchResponse{Part: &pb.SearchResponse_File{File: m}})
}

// show is called with each line to be sent.
func (r *searching) show(l *lines.Line) error {
	r.waiting = append(r.waiting, shownOf(l, r.plan.lineBytes))
	if r.waitBytes += searchLineCost + min(len(l.Text), r.plan.lineBytes); r.waitBytes >= searchBatch {
		if err := r.flush(); err != nil {
			return err
		}
	}
	if l.Context {
		return nil
	}
	if r.selected++; r.plan.maxMatches > 0 && r.counts.matches+r.selected >= r.plan.maxMatches {
		return errEnough
	}
	return nil
}

// flush sends the lines that wait.
func (r *searching) flush() error {
	if len(r.waiting) == 0 {
		return nil
	}
	m := &pb.SearchLines{Lines: r.waiting}
	m.Path, m.RawPath = textOrRaw(r.path)
	err := r.tell(&pb.SearchResponse{Part: &pb.SearchResponse_Lines{Lines: m}})
	clear(r.waiting)
	r.waiting, r.waitBytes = r.waiting[:0], 0
	return err
}

// failed tells what could not be searched. What ends the search it returns.
func (r *searching) failed(ctx context.Context, path string, err error) error {
	_, gone := errors.AsType[errSend](err)
	_, bound := errors.AsType[*denial](err)
	if gone || bound || ctx.Err() != nil {
		return err
	}
	r.counts.failures++
	m := &pb.SearchFailure{}
	m.Path, m.RawPath = textOrRaw(path)
	if e, ok := errors.AsType[*connect.Error](r.s.wire(err)); ok {
		m.Code, m.Message, m.Detail = e.Code().String(), fault.Clean(e.Message()), detailOf(e)
	}
	return r.tell(&pb.SearchResponse{Part: &pb.SearchResponse_Failure{Failure: m}})
}

// pause is called before each block is read: others have their turn at the processor, and the client hears of what waits for it, or
// that there is nothing new.
func (r *searching) pause() error {
	runtime.Gosched()
	silent := r.s.o.Now().Sub(r.sent)
	switch {
	case len(r.waiting) > 0 && silent >= searchDelay:
		return r.flush()
	case silent >= searchSilence:
		return r.tell(&pb.SearchResponse{Part: &pb.SearchResponse_Progress{Progress: r.counts.message()}})
	}
	return nil
}

// end sends the trailer.
func (r *searching) end() error {
	if r.ended == 0 {
		r.ended = pb.SearchEnd_SEARCH_END_COMPLETE
	}
	return r.tell(&pb.SearchResponse{Part: &pb.SearchResponse_Trailer{Trailer: &pb.SearchTrailer{Counts: r.counts.message(), End: r.ended}}})
}

// count adds the search to what the server has done.
func (r *searching) count() {
	c := &r.s.counts.searched
	c.files.Add(r.counts.files)
	c.bytes.Add(r.counts.bytes)
	c.matches.Add(r.counts.matches)
}

// searched is a file that is searched.
type searched struct {
	*lines.Reader
	r    *searching
	left uint64 // of the bytes that it had when it was found
}

// Read implements io.Reader.
func (f *searched) Read(b []byte) (int, error) {
	r := f.r
	switch err := r.pause(); {
	case err != nil:
		return 0, err
	case f.left == 0:
		return 0, io.EOF
	case r.left == 0:
		return 0, errSpent
	}
	n, err := f.Reader.Read(b[:min(uint64(len(b)), f.left, r.left)])
	f.left -= uint64(n)
	r.left -= uint64(n)
	r.counts.bytes += uint64(n)
	if errors.Is(err, io.EOF) && f.left > 0 {
		err = errChanged // it has become shorter
	}
	return n, err
}

// Hole implements lines.HoleReader. A hole is not read, and so costs nothing of the bound of bytes.
func (f *searched) Hole() uint64 {
	n := min(f.Reader.Hole(), f.left)
	f.left -= n
	return n
}
