package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	bigName = "big"
	bigSize = 256 << 20
	// blockSize is at what distance a number in the big file says where it is, so
	// that a road that brings other bytes is found out.
	blockSize = 4 << 10

	// smallFiles are opened in one measurement, of each size.
	smallFiles = 2000

	// Each road has its own files to be written, which are there from the start:
	// what makes a file longer is paid for by its file system's journal.
	writeSpan  = 4 << 20
	maxWorkers = 16
)

func tree(dir string) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, bigName))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	block := make([]byte, 1<<20)
	for off := 0; off < bigSize; off += len(block) {
		number(block, off)
		if _, err := f.Write(block); err != nil {
			return err
		}
	}
	for _, size := range []int{4 << 10, 64 << 10} {
		for i := range smallFiles {
			number(block[:size], 0)
			if err := os.WriteFile(filepath.Join(dir, smallName(size, i)), block[:size], 0o644); err != nil {
				return err
			}
		}
	}
	for _, road := range roadNames {
		for i := range maxWorkers {
			if err := os.WriteFile(filepath.Join(dir, writtenName(road, i)), make([]byte, writeSpan), 0o644); err != nil {
				return err
			}
		}
	}
	syscall.Sync()
	return nil
}

func writtenName(road string, worker int) string { return fmt.Sprintf("written-%s-%d", road, worker) }

func smallName(size, i int) string { return fmt.Sprintf("of-%d-%04d", size, i) }

func number(p []byte, off int) {
	for i := 0; i < len(p); i += blockSize {
		binary.LittleEndian.PutUint64(p[i:], uint64(off+i)^0x5a5a5a5a)
	}
}

// load is one measurement, or what warms up for it.
type load struct {
	test *test
	road *road
	stop atomic.Bool
	next atomic.Int64 // of the small files
	ops  atomic.Int64

	mu  sync.Mutex
	err error // the first
}

// run has all workers work for so long, or until no small file is left.
func (l *load) run(ctx context.Context, d time.Duration) (took time.Duration, err error) {
	l.stop.Store(false)
	l.ops.Store(0)
	l.next.Store(0)
	files := make([]file, l.test.workers)
	defer func() {
		for _, f := range files {
			if f != nil {
				err = errors.Join(err, f.close())
			}
		}
	}()
	if l.test.op != opOpen {
		for i := range files {
			if files[i], err = l.road.open(ctx, l.name(i), l.test.op == opWrite); err != nil {
				return 0, err
			}
		}
		timer := time.AfterFunc(d, func() { l.stop.Store(true) })
		defer timer.Stop()
	}
	start := time.Now()
	var wg sync.WaitGroup
	for i, f := range files {
		for j := range l.test.depth {
			wg.Go(func() { l.worker(ctx, f, uint64(i*l.test.depth+j)) })
		}
	}
	wg.Wait()
	return time.Since(start), l.err
}

func (l *load) name(worker int) string {
	if l.test.op == opWrite {
		return writtenName(l.road.name, worker)
	}
	return bigName
}

// worker works until it is to stop, and counts what it has done at the end.
func (l *load) worker(ctx context.Context, f file, seed uint64) {
	t := l.test
	p := make([]byte, t.size)
	ops, off, random := int64(0), 0, seed*2+1
	var err error
	for err == nil && !l.stop.Load() && ctx.Err() == nil {
		switch t.op {
		case opRandom:
			random = random*6364136223846793005 + 1442695040888963407
			err = read(f, p, int(random>>33)%(bigSize/t.size)*t.size)
		case opSequence:
			err = read(f, p, off%bigSize)
		case opWrite:
			err = f.write(p, off%writeSpan)
		case opOpen:
			i := int(l.next.Add(1)) - 1
			if i >= smallFiles {
				l.ops.Add(ops)
				return
			}
			err = l.once(ctx, smallName(t.size, i), p)
		}
		off += t.size
		ops++
	}
	l.ops.Add(ops)
	l.fail(err)
}

func (l *load) fail(err error) {
	if err == nil {
		return
	}
	l.stop.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
	}
}

func (l *load) once(ctx context.Context, name string, p []byte) error {
	f, err := l.road.open(ctx, name, false)
	if err != nil {
		return err
	}
	return errors.Join(read(f, p, 0), f.close())
}

// read reads, and looks whether what comes is what is there.
func read(f file, p []byte, off int) error {
	if err := f.read(p, off); err != nil {
		return err
	}
	if got := binary.LittleEndian.Uint64(p); got != uint64(off)^0x5a5a5a5a {
		return fmt.Errorf("at %d are bytes of %d", off, got^0x5a5a5a5a)
	}
	clear(p[:8])
	return nil
}
