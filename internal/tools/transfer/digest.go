package transfer

import (
	"bytes"
	"encoding/binary"

	"github.com/zeebo/blake3"
)

// digest tells contents apart. A hole costs it nothing: blocks of zeros count by their
// number and are not hashed, whether they were read or are known to be a hole. So it does
// not matter where a file has its holes.
type digest struct {
	sum   *blake3.Hasher // of the blocks that are not zeros
	runs  *blake3.Hasher // of where the others are
	part  []byte         // of a block that is not whole yet, shorter than zeroBlock
	block uint64         // how many blocks there were
	run   uint64         // how many of them, at the end, are zeros
}

func newDigest() *digest {
	return &digest{sum: blake3.New(), runs: blake3.New(), part: make([]byte, 0, zeroBlock)}
}

// write adds bytes.
func (d *digest) write(b []byte) {
	if n := len(d.part); n > 0 {
		n = min(zeroBlock-n, len(b))
		d.part, b = append(d.part, b[:n]...), b[n:]
		if len(d.part) < zeroBlock {
			return
		}
		d.blocks(d.part)
		d.part = d.part[:0]
	}
	whole := len(b) / zeroBlock * zeroBlock
	d.blocks(b[:whole])
	d.part = append(d.part, b[whole:]...)
}

// blocks adds whole blocks.
func (d *digest) blocks(b []byte) {
	start := 0 // of those that are not zeros
	for at := 0; at < len(b); at += zeroBlock {
		if !bytes.Equal(b[at:at+zeroBlock], zeros[:zeroBlock]) {
			d.endRun()
			d.block++
			continue
		}
		_, _ = d.sum.Write(b[start:at]) // never fails
		start = at + zeroBlock
		d.block++
		d.run++
	}
	_, _ = d.sum.Write(b[start:])
}

// endRun adds the zeros that have come to an end.
func (d *digest) endRun() {
	if d.run == 0 {
		return
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], d.block-d.run)
	binary.BigEndian.PutUint64(b[8:], d.run)
	_, _ = d.runs.Write(b[:])
	d.run = 0
}

// hole adds n zeros.
func (d *digest) hole(n uint64) {
	first := min(n, uint64(zeroBlock-len(d.part))%zeroBlock)
	d.write(zeros[:first])
	n -= first
	d.block, d.run = d.block+n/zeroBlock, d.run+n/zeroBlock
	d.write(zeros[:n%zeroBlock])
}

// result ends the digest.
func (d *digest) result() (sum [32]byte) {
	d.endRun()
	_, _ = d.sum.Write(d.part)
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], d.block*zeroBlock+uint64(len(d.part)))
	_, _ = d.runs.Write(d.sum.Sum(b[:])[:])
	d.runs.Sum(sum[:0])
	return sum
}
