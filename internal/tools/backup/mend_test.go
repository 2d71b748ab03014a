package backup

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/internal/tools/snapshot"
	"github.com/nfsbox/nfsbox/internal/tools/upkeep"
	"github.com/nfsbox/nfsbox/vfs"
)

// kinds makes a tree that has an object of each kind in its snapshot: a pack, pieces, holes and lists of their own.
func (b *bed) kinds() {
	b.t.Helper()
	long := vfs.ACL{Access: []vfs.ACLEntry{
		{Tag: vfs.ACLUserObj, Perm: 7}, {Tag: vfs.ACLGroupObj, Perm: 5}, {Tag: vfs.ACLMask, Perm: 5}, {Tag: vfs.ACLOther, Perm: 5},
	}}
	for i := range uint32(400) {
		long.Access = append(long.Access, vfs.ACLEntry{Tag: vfs.ACLUser, ID: 1_000_000 + i, Perm: 4})
	}
	for i := range 3 {
		d := b.create(b.root, fmt.Sprint("d", i), vfs.CreateHow{Type: vfs.TypeDir})
		b.file(d, "small", strings.Repeat(fmt.Sprint(i), 1000))
	}
	b.file(b.root, "large", noise(300<<10))
	d := b.create(b.root, "odd", vfs.CreateHow{Type: vfs.TypeDir})
	sparse := b.file(d, "sparse", "begin")
	for i := range uint64(70) {
		b.write(sparse, i*3*zeroBlock, "data")
	}
	for _, h := range []vfs.Handle{d, sparse} {
		if err := b.fs.SetACL(b.t.Context(), h, long); err != nil {
			b.t.Fatal(err)
		}
	}
}

// keys are those of the store that begin with a prefix.
func (b *bed) keys(prefix string) (keys []string) {
	b.t.Helper()
	for info, err := range object.All(b.t.Context(), b.store, prefix) {
		if err != nil {
			b.t.Fatal(err)
		}
		keys = append(keys, info.Key)
	}
	return keys
}

func (b *bed) get(key string) []byte {
	b.t.Helper()
	r, _, err := b.store.Get(b.t.Context(), key, 0, -1)
	if err != nil {
		b.t.Fatal(err)
	}
	all, err := io.ReadAll(r)
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

func (b *bed) put(key string, content []byte) {
	b.t.Helper()
	if _, err := b.store.Put(b.t.Context(), key, bytes.NewReader(content), object.PutOptions{Size: -1}); err != nil {
		b.t.Fatal(err)
	}
}

// damagedBut counts the damaged objects of the store when only one snapshot is left.
func (b *bed) damagedBut(sum *Summary) uint64 {
	b.t.Helper()
	for _, key := range b.keys("snapshots/") {
		if !strings.HasSuffix(sum.Snapshot, key[len("snapshots/t/"):]) {
			if err := b.store.Delete(b.t.Context(), key); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	found, err := upkeep.Check(b.t.Context(), b.store, upkeep.CheckOptions{ReadData: 1})
	if err != nil {
		b.t.Fatal(err)
	}
	return found.Damaged
}

// copied is a store with the same objects.
func (b *bed) copied() object.Store {
	c := &bed{t: b.t, store: object.NewMemory(object.MemoryOptions{})}
	for _, key := range b.keys("") {
		c.put(key, b.get(key))
	}
	return c.store
}

// TestMend damages each object of a store in one of several ways, and wants the next backup that is verified to mend what it needs: the
// new snapshot is whole, and a check that reads all finds nothing.
func TestMend(t *testing.T) {
	ways := []func(b *bed, key, other string){
		func(b *bed, key, _ string) { b.store.(*object.Memory).Corrupt(key, int64(len(b.get(key))/2)) },
		func(b *bed, key, _ string) { whole := b.get(key); b.put(key, whole[:len(whole)/2]) },
		func(b *bed, key, other string) { b.put(key, b.get(other)) },
	}
	b := newBed(t)
	b.kinds()
	o := b.options()
	o.Plain = true
	first, _ := b.run(o)
	keys, whole := b.keys("sha256/"), b.store
	if first.Mended != 0 || len(keys) < 6 {
		t.Fatalf("%+v, %d objects", first, len(keys))
	}
	mended, read := uint64(0), uint64(0)
	for i, key := range keys {
		b.store = whole
		b.store = b.copied()
		ways[i%len(ways)](b, key, keys[(i+1)%len(keys)])
		o := b.options()
		o.Verify, o.Plain = true, true
		sum, s := b.run(o)
		b.wantSame(s)
		if sum.Damaged == 0 || sum.Differences != 0 || !sum.Complete {
			t.Errorf("%s: %+v", key, sum)
		}
		if n := b.damagedBut(&sum); n != 0 {
			t.Errorf("%s: %d objects are damaged after %+v", key, n, sum)
		}
		mended, read = mended+sum.Mended, read+sum.Why["damaged"]
		b.prune() // a damaged pack is in no use any more
		for _, left := range b.keys("sha256/") {
			if sum, _ := object.ContentSum(left); object.SumOf(b.get(left)) != sum {
				t.Errorf("%s: %s is damaged, and stays", key, left)
			}
		}
	}
	if mended == 0 || read == 0 {
		t.Errorf("%d objects were mended, and %d files read for it", mended, read)
	}
}

// TestShortPack cuts a pack, and wants a backup to see so without reading it: files behind the end are read, those before it are not.
func TestShortPack(t *testing.T) {
	b := newBed(t)
	for i := range uint64(4) {
		b.file(b.root, fmt.Sprint("f", i), small(i))
	}
	b.backup()
	for _, key := range b.keys("sha256/") {
		if whole := b.get(key); len(whole) > 20_000 {
			b.put(key, whole[:12_000])
		}
	}
	sum, s := b.backup()
	b.wantSame(s)
	if sum.Why["damaged"] != 2 || sum.Read != 2 || sum.Differences != 0 {
		t.Errorf("%+v", sum)
	}
}

// TestDamagedPart damages each object that backups read of their base, and wants the next one not to rely on it, read back or not: it may
// write the very same part.
func TestDamagedPart(t *testing.T) {
	mended := uint64(0)
	for i := 0; ; i++ {
		b := newBed(t)
		b.file(b.create(b.root, "d", vfs.CreateHow{Type: vfs.TypeDir}), "large", noise(300<<10))
		b.backup()
		keys := b.keys("sha256/")
		if i == len(keys) {
			break
		}
		b.store.(*object.Memory).Corrupt(keys[i], 7)
		sum, _ := b.backup()
		if sum.Damaged == 0 {
			continue // it is not read: it is a file's
		}
		if n := b.damagedBut(&sum); n != 0 {
			t.Errorf("%s: %d objects are damaged after %+v", keys[i], n, sum)
		}
		mended += sum.Mended
	}
	if mended == 0 {
		t.Error("no part was written again")
	}
}

// flaky is a store of which the first Get of each object has a wrong bit.
type flaky struct {
	object.Store
	key  string
	gets atomic.Int64
	puts atomic.Int64
}

func (f *flaky) Get(ctx context.Context, key string, off, n int64) (io.ReadCloser, object.Info, error) {
	r, info, err := f.Store.Get(ctx, key, off, n)
	if err != nil || key != f.key || f.gets.Add(1) != 1 {
		return r, info, err
	}
	b, err := io.ReadAll(r)
	b[0] ^= 1
	return io.NopCloser(bytes.NewReader(b)), info, err
}

func (f *flaky) Put(ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
	if key == f.key {
		f.puts.Add(1)
	}
	return f.Store.Put(ctx, key, r, o)
}

// TestFlaky wants an object that was read wrong once not to be replaced.
func TestFlaky(t *testing.T) {
	b := newBed(t)
	b.file(b.root, "large", noise(300<<10))
	b.backup()
	f := &flaky{Store: b.store, key: object.ContentKey(object.SumOf([]byte(noise(300 << 10))))}
	o := b.options()
	o.Store, o.Verify = f, true
	sum, s := b.run(o)
	b.wantSame(s)
	if sum.Why["damaged"] != 1 || sum.Mended != 0 || sum.Differences != 0 || f.puts.Load() != 0 || f.gets.Load() < 2 {
		t.Errorf("%d reads, %d puts: %+v", f.gets.Load(), f.puts.Load(), sum)
	}
}

// loses is a store that does not keep what is put over something.
type loses struct{ object.Store }

func (l loses) Put(ctx context.Context, key string, r io.Reader, o object.PutOptions) (object.Info, error) {
	if _, err := l.Stat(ctx, key); err == nil && !o.IfAbsent {
		return object.Info{}, nil
	}
	return l.Store.Put(ctx, key, r, o)
}

// TestNotMended wants an object that stays damaged to end the backup: there is no snapshot that relies on it.
func TestNotMended(t *testing.T) {
	b := newBed(t)
	b.file(b.root, "large", noise(300<<10))
	b.backup()
	b.store.(*object.Memory).Corrupt(object.ContentKey(object.SumOf([]byte(noise(300<<10)))), 0)
	o := b.options()
	o.Store, o.Verify = loses{b.store}, true
	if sum, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "cannot be read back") || sum.Snapshot != "" {
		t.Errorf("%v: %+v", err, sum)
	}
	if _, err := snapshot.Find(t.Context(), b.store, "t"); err != nil {
		t.Errorf("the snapshot before: %v", err)
	}
}

// TestMendedIsStored wants the bytes of an object that is mended to count as stored, and not as what the store had.
func TestMendedIsStored(t *testing.T) {
	b := newBed(t)
	b.file(b.root, "large", noise(300<<10))
	o := b.options()
	o.Plain = true
	b.run(o)
	key := object.ContentKey(object.SumOf([]byte(noise(300 << 10))))
	b.store.(*object.Memory).Corrupt(key, 0)
	o = b.options()
	o.Plain, o.Verify = true, true
	sum, _ := b.run(o)
	if sum.Mended != 1 || sum.Stored < 300<<10 || sum.Had >= 300<<10 {
		t.Errorf("%+v", sum)
	}
}

// TestDifferences wants an object that is read back with other bytes, just after it was stored, to be told.
func TestDifferences(t *testing.T) {
	b := newBed(t)
	b.file(b.root, "large", noise(300<<10))
	o, l := b.options(), listen(t)
	o.Store, o.Verify, o.Progress = &flaky{Store: b.store, key: object.ContentKey(object.SumOf([]byte(noise(300 << 10))))}, true, l.Tracker
	sum, _ := b.run(o)
	if sum.Differences != 1 || sum.Mended != 0 || len(l.kinds["difference content"]) != 1 || l.kinds["difference content"][0] != "large" {
		t.Errorf("%v: %+v", l.kinds, sum)
	}
}
