package index

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"slices"
)

const (
	// mergeBuffer is how much of each segment is read at once when segments are merged.
	mergeBuffer = 8 * blockSize
	// writeBuffer is how much of a segment is written at once.
	writeBuffer = 64 * blockSize
)

// writer writes the blocks and the sparse keys of a segment.
type writer struct {
	span
	ctx    context.Context
	out    *bufio.Writer
	next   item // added, but not written: a later entry of its key may follow
	any    bool
	block  block
	sparse []byte
}

// add adds an item. Items come in order. Of those with the same key the last stays.
func (w *writer) add(one item) error {
	if w.any && !w.next.sameKey(one) {
		if err := w.put(); err != nil {
			return err
		}
	}
	w.next, w.any = one, true
	return nil
}

// put writes the item that was added last.
func (w *writer) put() error {
	no := w.blocks()
	if len(w.block) == 0 && w.ctx.Err() != nil {
		return w.ctx.Err()
	}
	if len(w.block) == 0 && no%uint64(w.step) == 0 {
		w.sparse = binary.BigEndian.AppendUint64(w.sparse, w.next.high)
		w.sparse = binary.BigEndian.AppendUint64(w.sparse, w.next.low)
	}
	w.block = w.next.append(w.block)
	if w.keys++; w.block.len() < blockKeys {
		return nil
	}
	return w.flush()
}

// flush writes the block.
func (w *writer) flush() error {
	if len(w.block) == 0 {
		return nil
	}
	_, err := w.out.Write(seal(w.block, w.blocks()-1))
	w.block = w.block[:0]
	return err
}

// write makes a segment of the entries [from, to) from up to most items that fill adds. It
// opens it behind the others.
func (x *Index) write(from, to uint64, most int, fill func(*writer) error) error {
	mark, err := x.log.Mark(to - 1)
	if err != nil {
		return err
	}
	one := span{from: from, to: to, step: stepFor(uint64(most), x.sparse), mark: mark}
	if err := x.change(func() error { return x.writeFile(one, fill) }); err != nil {
		return errors.Join(err, ignoreAbsent(x.dir.Remove(temporary)))
	}
	if err := x.change(func() error { return x.dir.Rename(temporary, one.name()) }); err != nil {
		return errors.Join(err, ignoreAbsent(x.dir.Remove(temporary)))
	}
	s, err := x.openSegment(one)
	if err != nil {
		return err
	}
	x.segments = append(x.segments, s)
	return nil
}

// change changes the directory.
func (x *Index) change(do func() error) error {
	if x.before != nil {
		if err := x.before(); err != nil {
			return err
		}
	}
	return do()
}

func ignoreAbsent(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// writeFile writes the temporary. The directory is not synced: a segment that a crash takes away
// is made anew.
func (x *Index) writeFile(one span, fill func(*writer) error) (err error) {
	f, err := x.dir.OpenFile(temporary, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := &writer{span: one, ctx: x.ctx, out: bufio.NewWriterSize(f, writeBuffer), block: make(block, 0, blockSize)}
	if _, err := w.out.Write(make([]byte, blockSize)); err != nil {
		return err
	}
	if err := fill(w); err != nil {
		return err
	}
	if err := w.put(); err != nil {
		return err
	}
	if err := w.flush(); err != nil {
		return err
	}
	if _, err := w.out.Write(w.sparse); err != nil {
		return err
	}
	if err := w.out.Flush(); err != nil {
		return err
	}
	if _, err := f.WriteAt(w.header(x.identity, crc32.Checksum(w.sparse, castagnoli)), 0); err != nil {
		return err
	}
	return x.sync(f)
}

// compact merges the last segments until each has at least as many keys as all that follow it.
func (x *Index) compact() error {
	for x.err == nil {
		var behind uint64
		first := len(x.segments)
		for i, s := range slices.Backward(x.segments) {
			if s.keys < behind {
				first = i
			}
			behind += s.keys
		}
		if first == len(x.segments) {
			return nil
		}
		if err := x.merge(max(first, len(x.segments)-x.atOnce)); err != nil {
			return err
		}
	}
	return nil
}

// merge makes the segments from number first on one. An error is a damage, or that of x.ctx; if
// it fails for another reason, which x.err then says, they stay.
func (x *Index) merge(first int) error {
	old := slices.Clone(x.segments[first:])
	var keys uint64
	for _, s := range old {
		keys += s.keys
	}
	x.segments = x.segments[:first]
	err := x.write(old[0].from, old[len(old)-1].to, int(keys), func(w *writer) error { return mergeInto(w, old) })
	if err != nil {
		x.segments = append(x.segments, old...)
		if damaged := (*damage)(nil); errors.As(err, &damaged) {
			return err
		}
		x.err = err
		return x.ctx.Err()
	}
	for _, s := range old {
		_ = s.file.Close() // nothing was written
		// A file that stays is met and removed when the index is opened again.
		_ = x.change(func() error { return x.dir.Remove(s.name()) })
	}
	return nil
}

// cursor reads the items of a segment in order.
type cursor struct {
	*segment
	no    uint64 // of the next block that is read
	ahead []byte // sealed blocks that were read
	buf   []byte
	left  block
	item  item
}

// next goes to the next item; false at the end.
func (c *cursor) next() (ok bool, err error) {
	if len(c.left) == 0 {
		if ok, err := c.more(); !ok || err != nil {
			return false, err
		}
	}
	c.item, c.left = parseItem(c.left), c.left[itemSize:]
	return true, nil
}

// more goes to the next block.
func (c *cursor) more() (ok bool, err error) {
	if len(c.ahead) == 0 {
		n := min(uint64(len(c.buf)/blockSize), c.blocks()-c.no)
		if n == 0 {
			return false, nil
		}
		c.ahead = c.buf[:n*blockSize]
		if err := c.read(c.ahead, c.no); err != nil {
			return false, err
		}
	}
	if c.left, err = unseal(c.ahead[:blockSize], c.no); err != nil {
		return false, &damage{c.segment, err}
	}
	c.ahead, c.no = c.ahead[blockSize:], c.no+1
	return true, nil
}

// mergeInto adds the items of all segments in order.
func mergeInto(w *writer, segments []*segment) error {
	var heap []*cursor // the one with the lowest item first
	for _, s := range segments {
		c := &cursor{segment: s, buf: make([]byte, mergeBuffer)}
		ok, err := c.next()
		if err != nil {
			return err
		}
		if ok {
			heap = append(heap, c)
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		sink(heap, i)
	}
	for len(heap) > 0 {
		if err := w.add(heap[0].item); err != nil {
			return err
		}
		ok, err := heap[0].next()
		if err != nil {
			return err
		}
		if !ok {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		}
		sink(heap, 0)
	}
	return nil
}

// sink moves the i-th cursor of a heap down to its place.
func sink(heap []*cursor, i int) {
	for {
		low := 2*i + 1
		if low >= len(heap) {
			return
		}
		if low+1 < len(heap) && heap[low+1].item.compare(heap[low].item) < 0 {
			low++
		}
		if heap[i].item.compare(heap[low].item) <= 0 {
			return
		}
		heap[i], heap[low] = heap[low], heap[i]
		i = low
	}
}
