package search

import (
	"context"
	"io"
	"sync"
)

const (
	// writeAt is how much of a file's output is collected before it is written, in bytes.
	writeAt = 32 << 10
	// heldPerFile bounds what one file holds until its turn comes, but for the last line, in bytes. At the bound its
	// worker waits.
	heldPerFile = 256 << 10
	// heldDone bounds what all files hold that are done and wait for their turn, in bytes. At the bound a worker waits
	// with the file that it has done.
	heldDone = 4 << 20
	// maxAhead is how many files may be under way, or done, behind the one whose turn it is. At the bound no
	// further one is begun.
	maxAhead = 1024
)

// Printer writes the output of one file after the other. Its methods may be called concurrently.
type Printer struct {
	w   io.Writer
	sep string

	mu      sync.Mutex
	changed sync.Cond
	first   *Output // whose turn it is, and the others behind it; nil: none
	last    *Output
	files   int
	held    int
	wrote   bool
	err     error // of w, or why it has ended
}

// NewPrinter returns a Printer that writes to w, and sep between the outputs of files that have any. It waits for nothing
// any more when ctx ends.
func NewPrinter(ctx context.Context, w io.Writer, sep string) *Printer {
	p := &Printer{w: w, sep: sep}
	p.changed.L = &p.mu
	context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fail(ctx.Err())
	})
	return p
}

// fail ends it. mu is held.
func (p *Printer) fail(err error) {
	if p.err == nil {
		p.err = err
	}
	p.changed.Broadcast()
}

// Output is what one file prints. It is for one goroutine.
type Output struct {
	p    *Printer
	buf  []byte
	next *Output
	done bool
	some bool // something was written
}

// begin returns the Output of the next file.
func (p *Printer) begin() (*Output, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.files >= maxAhead && p.err == nil {
		p.changed.Wait()
	}
	if p.err != nil {
		return nil, p.err
	}
	o := &Output{p: p}
	if p.first == nil {
		p.first = o
	} else {
		p.last.next = o
	}
	p.last = o
	p.files++
	return o, nil
}

// Write appends to the output. It may wait for its turn.
func (o *Output) Write(b []byte) (int, error) {
	o.buf = append(o.buf, b...)
	if len(o.buf) < writeAt {
		return len(b), nil
	}
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	for len(o.buf) >= heldPerFile && o.p.first != o && o.p.err == nil {
		o.p.changed.Wait()
	}
	if o.p.first == o {
		o.write()
	}
	return len(b), o.p.err
}

// Flush writes what there is, if it is o's turn.
func (o *Output) Flush() error {
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	if o.p.first == o {
		o.write()
	}
	return o.p.err
}

// write writes what o has, whose turn it is. mu is held.
func (o *Output) write() {
	p := o.p
	if p.err != nil || len(o.buf) == 0 {
		return
	}
	if !o.some && p.wrote && p.sep != "" {
		if _, err := io.WriteString(p.w, p.sep); err != nil {
			p.fail(err)
			return
		}
	}
	o.some, p.wrote = true, true
	if _, err := p.w.Write(o.buf); err != nil {
		p.fail(err)
	}
	o.buf = o.buf[:0]
}

// end ends the output: the next one has its turn.
func (o *Output) end() error {
	p := o.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.first != o && p.held+len(o.buf) > heldDone && p.err == nil {
		p.changed.Wait()
	}
	o.done = true
	p.held += len(o.buf)
	for p.first != nil && p.first.done {
		o := p.first
		p.held -= len(o.buf)
		o.write()
		o.buf = nil
		p.first = o.next
		p.files--
	}
	p.changed.Broadcast()
	return p.err
}
