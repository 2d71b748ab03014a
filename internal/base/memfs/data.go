package memfs

import (
	"bytes"
	"io"
	"math/bits"
	"slices"
	"sort"
)

// pageSize is the unit of holes and of stability, in bytes.
const pageSize = 4096

// page is a written page of a file. bytes may be shorter than the page: the rest is zeros.
type page struct {
	index uint64
	bytes []byte
}

// data is the content of a file: its size, and the pages that are no holes.
type data struct {
	size  uint64
	pages []page // ordered by index, each of it once

	// saved has the stable contents of pages that were written unstable since, for a restart; nil
	// is a hole. The map is nil while everything is stable; stableSize is valid only otherwise.
	saved      map[uint64][]byte
	stableSize uint64
}

// find is the position of the page of that index in d.pages, or where it would be.
func (d *data) find(index uint64) int {
	return sort.Search(len(d.pages), func(i int) bool { return d.pages[i].index >= index })
}

// pagesOf returns the first page of [off, end) and the one after its last.
func pagesOf(off, end uint64) (first, behind uint64) {
	return off / pageSize, end/pageSize + min(1, end%pageSize)
}

// read fills p from off and returns how many bytes there were.
func (d *data) read(p []byte, off uint64) int {
	if off >= d.size {
		return 0
	}
	p = p[:min(uint64(len(p)), d.size-off)]
	clear(p)
	end := off + uint64(len(p))
	first, behind := pagesOf(off, end)
	for _, pg := range d.pages[d.find(first):d.find(behind)] {
		start := pg.index * pageSize
		if start >= off {
			copy(p[start-off:], pg.bytes)
		} else if off-start < uint64(len(pg.bytes)) {
			copy(p, pg.bytes[off-start:])
		}
	}
	return len(p)
}

// missing is how many pages a write of [off, end) would add.
func (d *data) missing(off, end uint64) uint64 {
	first, behind := pagesOf(off, end)
	return behind - first - uint64(d.find(behind)-d.find(first))
}

func (d *data) write(p []byte, off uint64, stable bool) {
	end := off + uint64(len(p))
	if !stable {
		d.save(off, end)
	}
	pages := d.span(off, end)
	for i := range pages {
		pg := &pages[i]
		start := pg.index * pageSize
		from, to := max(off, start), min(end, start+pageSize)
		pg.bytes = extend(pg.bytes, int(to-start))
		copy(pg.bytes[from-start:to-start], p[from-off:])
	}
	d.size = max(d.size, end)
	if stable {
		d.settle(off, end)
	}
}

// span makes the missing pages of [off, end) and returns all of them.
func (d *data) span(off, end uint64) []page {
	first, behind := pagesOf(off, end)
	i, j := d.find(first), d.find(behind)
	if uint64(j-i) == behind-first {
		return d.pages[i:j]
	}
	run := make([]page, behind-first)
	for k := range run {
		run[k].index = first + uint64(k)
	}
	for _, pg := range d.pages[i:j] {
		run[pg.index-first] = pg
	}
	d.pages = slices.Replace(d.pages, i, j, run...)
	return d.pages[i : i+len(run)]
}

// extend makes b at least n bytes long, the new ones zero. Small files get small pages, because
// trees of a million of them are tested.
func extend(b []byte, n int) []byte {
	old := len(b)
	if n <= old {
		return b
	}
	if n > cap(b) {
		room := max(64, 1<<bits.Len(uint(n-1)))
		b = append(make([]byte, 0, room), b...)
	}
	b = b[:n]
	clear(b[old:])
	return b
}

// save keeps the stable state of the pages of [off, end) for a restart.
func (d *data) save(off, end uint64) {
	if d.saved == nil {
		d.saved = make(map[uint64][]byte)
		d.stableSize = d.size
	}
	first, behind := pagesOf(off, end)
	for index := first; index < behind; index++ {
		if _, ok := d.saved[index]; ok {
			continue
		}
		d.saved[index] = nil
		if i := d.find(index); i < len(d.pages) && d.pages[i].index == index {
			d.saved[index] = bytes.Clone(d.pages[i].bytes)
		}
	}
}

// settle makes the pages of [off, end) stable, and the size as far as they reach.
func (d *data) settle(off, end uint64) {
	if d.saved == nil {
		return
	}
	first, behind := pagesOf(off, end)
	for index := range d.saved {
		if index >= first && index < behind {
			delete(d.saved, index)
		}
	}
	d.stableSize = max(d.stableSize, min(d.size, end))
	d.forget()
}

// forget drops the saved pages once everything is stable.
func (d *data) forget() {
	if len(d.saved) == 0 && d.stableSize == d.size {
		d.saved = nil
	}
}

// truncate sets the size, stable at once. What is cut off reads as zeros if the file grows again.
func (d *data) truncate(size uint64) {
	_, behind := pagesOf(0, size)
	keep := d.find(behind)
	clear(d.pages[keep:])
	d.pages = d.pages[:keep]
	if i := len(d.pages) - 1; i >= 0 && d.pages[i].index == behind-1 {
		d.pages[i].bytes = cut(d.pages[i].bytes, size)
	}
	d.size = size
	if d.saved == nil {
		return
	}
	for index, b := range d.saved {
		if index >= behind {
			delete(d.saved, index)
		} else if index == behind-1 {
			d.saved[index] = cut(b, size)
		}
	}
	d.stableSize = size
	d.forget()
}

// cut removes what is after size from the last page of a file.
func cut(b []byte, size uint64) []byte {
	keep := size % pageSize
	if keep == 0 || keep >= uint64(len(b)) {
		return b
	}
	return b[:keep]
}

// restart restores the stable state. lost is false if nothing was unstable.
func (d *data) restart() (lost bool) {
	saved, size := d.saved, d.stableSize
	if saved == nil {
		return false
	}
	d.saved = nil
	kept := d.pages[:0]
	for _, pg := range d.pages {
		if b, ok := saved[pg.index]; ok {
			pg.bytes = b
			if b == nil {
				continue
			}
		}
		kept = append(kept, pg)
	}
	clear(d.pages[len(kept):])
	d.pages = kept
	d.truncate(size)
	return true
}

// nextData and nextHole are those of vfs.HoleSeeker.
func (d *data) nextData(off uint64) (uint64, error) {
	i := d.find(off / pageSize)
	if off >= d.size || i == len(d.pages) {
		return 0, io.EOF
	}
	return max(off, d.pages[i].index*pageSize), nil
}

func (d *data) nextHole(off uint64) (uint64, error) {
	if off > d.size {
		return 0, io.EOF
	}
	index := off / pageSize
	for _, pg := range d.pages[d.find(index):] {
		if pg.index != index {
			break
		}
		index++
	}
	return min(max(off, index*pageSize), d.size), nil
}
