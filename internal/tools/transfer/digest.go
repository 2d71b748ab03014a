package transfer

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/zeebo/blake3"
)

// digest tells contents apart. It is their BLAKE3, or, for two copies to be compared, one
// for which a hole costs nothing: blocks of zeros count by their number and are not
// hashed, whether they were read or are known to be a hole. So it does not matter where
// either file has its holes.
type digest struct {
	sum *blake3.Hasher // of all; or of the blocks that are not zeros
	// With zeros passed over:
	runs  *blake3.Hasher // of where they are; nil: none are
	part  []byte         // of a block that is not whole yet, shorter than zeroBlock
	block uint64         // how many blocks there were
	run   uint64         // how many of them, at the end, are zeros
}

// newDigest makes a digest that is the contents' BLAKE3 if plain.
func newDigest(plain bool) *digest {
	d := &digest{sum: blake3.New()}
	if !plain {
		d.runs, d.part = blake3.New(), make([]byte, 0, zeroBlock)
	}
	return d
}

// write adds bytes.
func (d *digest) write(b []byte) {
	if d.runs == nil {
		_, _ = d.sum.Write(b) // never fails
		return
	}
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
		_, _ = d.sum.Write(b[start:at])
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

// hole adds n zeros. A plain digest hashes them, which may take longer than anybody wants
// to wait.
func (d *digest) hole(ctx context.Context, n uint64) error {
	if d.runs != nil {
		first := min(n, uint64(zeroBlock-len(d.part))%zeroBlock)
		d.write(zeros[:first])
		n -= first
		d.block, d.run = d.block+n/zeroBlock, d.run+n/zeroBlock
		n %= zeroBlock
	}
	for n > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		m := min(n, zeroHash)
		d.write(zeros[:m])
		n -= m
	}
	return nil
}

// result ends the digest.
func (d *digest) result() (sum [32]byte) {
	if d.runs != nil {
		d.endRun()
		_, _ = d.sum.Write(d.part)
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], d.block*zeroBlock+uint64(len(d.part)))
		_, _ = d.runs.Write(d.sum.Sum(b[:])[:])
		d.runs.Sum(sum[:0])
		return sum
	}
	d.sum.Sum(sum[:0])
	return sum
}
