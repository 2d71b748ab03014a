package oncrpc

import (
	"encoding/binary"
	"errors"
	"io"
	"time"

	"github.com/nfsbox/nfsbox/internal/base/bufpool"
)

// A record is a message on a stream: fragments, each behind a word that holds
// its length and, in the top bit, whether it is the last (RFC 5531, section 11).
const (
	lastFragment = 1 << 31
	markBytes    = 4
)

// recordReader reads records from a stream. It keeps what it has read ahead. After an
// error of src that was not final, such as a passed deadline, every method can be called
// again: no byte is lost or seen twice.
type recordReader struct {
	src   io.Reader
	buf   []byte // read ahead: buf[r:w]
	r, w  int
	ahead int // one read into buf takes at most so much
	max   int // the longest record

	left   int  // of the current fragment
	last   bool // the current fragment is the record's last
	size   int  // of the record's fragments so far
	frags  int  // fragments of this record so far; 0: between records
	empty  int  // how many of them were empty, and not the last
	silent int  // reads in a row that gave nothing
	before int  // bytes of the record before
}

// idle reports whether nothing of a next record has been seen.
func (r *recordReader) idle() bool { return r.frags == 0 && r.r == r.w }

// buffered reports whether the next record stands in the buffer, whole and in
// one fragment.
func (r *recordReader) buffered() bool {
	return recordBytes(r.standing()) > 0
}

// standing is what stands in the buffer of the next records; nil in the middle of one.
func (r *recordReader) standing() []byte {
	if r.frags != 0 {
		return nil
	}
	return r.buf[r.r:r.w]
}

// pass drops a record of n bytes, word included, from what stands in the buffer.
func (r *recordReader) pass(n int) { r.r, r.before = r.r+n, n }

// recordBytes is the length of b's first record, word included, if that is there whole
// and in one fragment; else 0.
func recordBytes(b []byte) int {
	if len(b) < markBytes {
		return 0
	}
	word := binary.BigEndian.Uint32(b)
	if word&lastFragment == 0 || int64(word&^lastFragment) > int64(len(b)-markBytes) {
		return 0
	}
	return markBytes + int(word&^lastFragment)
}

// begin waits for the next record. The one before must have been read to its end. io.EOF
// says that the stream ended between two records.
func (r *recordReader) begin() error {
	for r.frags == 0 {
		if err := r.header(); err != nil {
			return err
		}
	}
	return r.advance()
}

// advance moves on to the next fragment that holds bytes; errRecordEnd says that there is
// none.
func (r *recordReader) advance() error {
	for r.left == 0 {
		if r.last {
			return errRecordEnd
		}
		if err := r.header(); err != nil {
			return err
		}
	}
	return nil
}

// header reads the word before a fragment.
func (r *recordReader) header() error {
	if err := r.fill(markBytes); err != nil {
		return err
	}
	word := binary.BigEndian.Uint32(r.buf[r.r:])
	r.r += markBytes
	n := int64(word &^ lastFragment)
	if total := int64(r.size) + n; total > int64(r.max) {
		e := &RecordError{Len: total, Max: int64(r.max)}
		if r.frags == 0 {
			e.Speaks = speaks(word)
		}
		return e
	}
	r.last = word&lastFragment != 0
	r.left = int(n)
	r.size += int(n)
	r.frags++
	if n > 0 || r.last {
		return nil
	}
	if r.empty++; r.empty > maxEmptyFragments+r.size/bytesPerEmpty {
		return errEmpties
	}
	return nil
}

// atMost bounds the length of the record that has begun.
func (r *recordReader) atMost(n int) error {
	r.max = n
	if r.size > n {
		return &RecordError{Len: int64(r.size), Max: int64(n)}
	}
	return nil
}

// finished moves on as advance does, and closes the record at its end. It reports whether
// to stop, and with what error.
func (r *recordReader) finished() (bool, error) {
	err := r.advance()
	if errors.Is(err, errRecordEnd) {
		r.end()
		return true, nil
	}
	return err != nil, err
}

// end closes the record; it must have been read to its end.
func (r *recordReader) end() {
	r.before = r.bytes()
	r.left, r.last, r.size, r.frags, r.empty = 0, false, 0, 0, 0
}

// bytes is the length of the record so far, with the words before its fragments; between
// records that of the one before.
func (r *recordReader) bytes() int {
	if r.frags == 0 {
		return r.before
	}
	return r.size + r.frags*markBytes
}

// most is how long the record may become: the sum of its fragments, or max if more follow.
func (r *recordReader) most() int {
	if r.last {
		return r.size
	}
	return r.max
}

// needs is for how many bytes a buffer that is full with have is to have room: for the
// fragment at hand and, if more follow, for twice as many as it has. However small the
// fragments are, the buffer is then copied seldom.
func (r *recordReader) needs(have int) int {
	n := have + r.left
	if r.last {
		return n
	}
	return max(n, have+min(have, r.max-r.size))
}

// have is how much of the record has come, with what stands in the buffer.
func (r *recordReader) have() int { return r.size - r.left + r.w - r.r }

// fill makes n bytes stand in buf.
func (r *recordReader) fill(n int) error {
	for r.w-r.r < n {
		if r.r == r.w {
			r.r, r.w = 0, 0
		} else if r.r+n > len(r.buf) {
			r.w = copy(r.buf, r.buf[r.r:r.w])
			r.r = 0
		}
		m, err := r.src.Read(r.buf[r.w:min(len(r.buf), r.w+max(n, r.ahead))])
		r.w += m
		if err := r.check(m, err); err != nil {
			return err
		}
	}
	return nil
}

// check judges what one read of src returned. It ignores an error that came with bytes:
// the next read returns it again.
func (r *recordReader) check(n int, err error) error {
	if n > 0 {
		r.silent = 0
		return nil
	}
	if errors.Is(err, io.EOF) && !r.idle() {
		return io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	if r.silent++; r.silent > maxIdleReads {
		return errNoProgress
	}
	return nil
}

// Read reads from the record, across fragments; at its end the error is errRecordEnd.
// From directRead bytes on it reads straight into p.
func (r *recordReader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := r.advance(); err != nil {
		return 0, err
	}
	n := min(len(p), r.left)
	if r.r == r.w && n >= directRead {
		n, err := r.src.Read(p[:n])
		r.left -= n
		return n, r.check(n, err)
	}
	if err := r.fill(1); err != nil {
		return 0, err
	}
	n = copy(p[:n], r.buf[r.r:r.w])
	r.r += n
	r.left -= n
	return n, nil
}

// full fills p from the record. It returns how many bytes it wrote, and errRecordEnd if
// the record has fewer.
func (r *recordReader) full(p []byte) (int, error) {
	got := 0
	for got < len(p) {
		n, err := r.Read(p[got:])
		got += n
		if err != nil {
			return got, err
		}
	}
	return got, nil
}

// skip drops what is left of the record and closes it.
func (r *recordReader) skip() error {
	for {
		if over, err := r.finished(); over {
			return err
		}
		if err := r.fill(1); err != nil {
			return err
		}
		n := min(r.left, r.w-r.r)
		r.r += n
		r.left -= n
	}
}

// admitter is asked before a buffer grows beyond smallRecord, for a record that may become
// n bytes long.
type admitter interface{ admit(n int) error }

// rest reads what is left of the record behind the bytes in b, and closes the record. It
// returns b, or a larger buffer in its place: the buffer grows with what arrives, by at
// most growFactor at a time, whatever length was announced. After an error the caller has
// to release the buffer, too, which holds what has come, or may call rest again with it.
func (r *recordReader) rest(pool *bufpool.Pool, b *bufpool.Buffer, a admitter) (*bufpool.Buffer, error) {
	for {
		if over, err := r.finished(); over {
			return b, err
		}
		have := len(b.B)
		if have == cap(b.B) {
			want := r.max // have times growFactor may be more than an int holds
			if have <= r.max/growFactor {
				want = max(have*growFactor, smallRecord)
			}
			want = min(r.needs(have), want)
			if a != nil && want > smallRecord {
				if err := a.admit(r.most()); err != nil {
					return b, err
				}
			}
			larger := pool.Get(want)
			larger.B = larger.B[:copy(larger.B, b.B)]
			b.Release()
			b = larger
		}
		n, err := r.Read(b.B[have:min(cap(b.B), have+r.left)])
		b.B = b.B[:have+n]
		if err != nil {
			return b, err
		}
	}
}

// past is a deadline that interrupts a read or a write at once.
var past = time.Unix(1, 0)

// ifEnd turns the end of a record, where more of it was needed, into err.
func ifEnd(err, instead error) error {
	if errors.Is(err, errRecordEnd) {
		return instead
	}
	return err
}
