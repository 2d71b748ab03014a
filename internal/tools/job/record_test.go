package job

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/internal/testkit/memfs"
	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

// TestResume kills a job again and again, until it gets through.
func TestResume(t *testing.T) {
	for _, syncs := range []bool{false, true} {
		var out hooks
		src, dst := mem(t, memfs.Options{}), newTree(t, memfs.New(memfs.Options{Fault: out.fault}))
		everything(src)
		want := src.list(src.root)
		dir := recordDir(t)
		r := rand.New(rand.NewPCG(7, 8))
		var skipped, files uint64
		runs, killed := 0, 0
		for {
			runs++
			o, v := options(t, src, dst, "copy")
			o.Record, o.ID = dir, "this job"
			if syncs {
				o.Dest.FS = newSyncing(dst.fs)
			}
			if runs < 12 {
				killed++
				out.set(diesAt(10 + r.IntN(600*runs)))
			} else {
				out.set(nil)
			}
			s, err := Copy(t.Context(), o)
			out.set(nil)
			files += s.Files
			if s.ExitCode(err) != ExitDone {
				if runs >= 12 {
					t.Fatalf("%v, %+v\n%s", err, s, v)
				}
				continue
			}
			skipped = s.Skipped
			break
		}
		if d := diff(want, dst.list(dst.at("copy"))); d != "" {
			t.Error(d)
		}
		if temps := dst.temps(); len(temps) > 0 {
			t.Errorf("left behind: %q", temps)
		}
		if skipped == 0 || killed == 0 || files > 311*3 {
			t.Errorf("syncs %v: %d runs, the last skipped %d; %d files were copied in all", syncs, runs, skipped, files)
		}
	}
}

// TestResumeChanges: files that differ from the record are copied again.
func TestResumeChanges(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{TimeDelta: time.Second})
	everything(src)
	dir := recordDir(t)
	run := func() Summary {
		t.Helper()
		o, v := options(t, src, dst, "copy")
		o.Record, o.ID = dir, "this job"
		s, err := Copy(t.Context(), o)
		if s.ExitCode(err) != ExitDone {
			t.Fatalf("%v, %+v\n%s", err, s, v)
		}
		return s
	}
	all := run().Files
	for _, tt := range []struct {
		what   string
		change func()
		copied uint64
	}{
		{"nothing", func() {}, 0},
		{"a byte of the source", func() {
			src.write(src.at("one byte"), 0, []byte("y"))
			src.set(src.at("one byte"), vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: epoch}) // its ctime tells
		}, 1},
		{"the source's mode", func() { src.set(src.at("one byte"), mode(0o640)) }, 1},
		{"another file of the source's", func() {
			dirHandle := src.at("names")
			h := src.file("new", 0o644, []byte("long"))
			src.set(h, vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: epoch})
			if _, _, err := src.fs.Rename(t.Context(), src.root, "new", dirHandle, strings.Repeat("n", vfs.MaxName)); err != nil {
				t.Fatal(err)
			}
		}, 1},
		{"the copy's contents", func() { dst.write(dst.at("copy/one byte"), 0, []byte("z")) }, 1},
		{"no copy", func() {
			if _, err := dst.fs.Remove(t.Context(), dst.at("copy"), "one byte", false); err != nil {
				t.Fatal(err)
			}
		}, 1},
		{"a link for the copy", func() {
			if _, err := dst.fs.Remove(t.Context(), dst.at("copy"), "one byte", false); err != nil {
				t.Fatal(err)
			}
			dst.make("copy/one byte", vfs.CreateHow{Type: vfs.TypeSymlink, Target: "empty"})
		}, 1},
		{"another file under the copy's name", func() {
			h := dst.file("elsewhere", 0o644, []byte("z"))
			a, err := dst.fs.GetAttr(t.Context(), dst.at("copy/one byte"), vfs.MaskV3)
			if err == nil {
				_, err = dst.fs.Remove(t.Context(), dst.at("copy"), "one byte", false)
			}
			if err != nil {
				t.Fatal(err)
			}
			dst.link(h, "copy/one byte")
			dst.set(h, vfs.SetAttr{Valid: vfs.MaskMtime | vfs.MaskMode, Mtime: a.Mtime, Mode: a.Mode})
		}, 1},
		{"another name of the copy", func() { dst.link(dst.at("copy/one byte"), "snapshot") }, 0},
		{"a link of another name", func() { src.link(src.at("empty"), "further") }, 1}, // its ctime changes
	} {
		tt.change()
		if s := run(); s.Files != tt.copied || s.Files+s.Skipped < all {
			t.Errorf("%s: %d files copied, want %d; %d skipped", tt.what, s.Files, tt.copied, s.Skipped)
		}
		if got := string(dst.read(dst.at("copy/one byte"), 1)); got != string(src.read(src.at("one byte"), 1)) {
			t.Errorf("%s: the copy holds %q", tt.what, got)
		}
	}
}

// nfsTimes keeps the nearest times that NFSv3 has.
type nfsTimes struct{ vfs.FS }

func (f nfsTimes) SetAttr(ctx context.Context, h vfs.Handle, set *vfs.SetAttr, guard *time.Time) (vfs.WCC, error) {
	own := *set
	own.Atime, own.Mtime = transfer.NFSTime(set.Atime), transfer.NFSTime(set.Mtime)
	return f.FS.SetAttr(ctx, h, &own, guard)
}

func (f nfsTimes) Info(ctx context.Context, h vfs.Handle, want vfs.InfoMask) (vfs.Info, error) {
	i, err := f.FS.Info(ctx, h, want)
	i.NFSTimes = true
	return i, err
}

// TestResumeLostTimes: a run that skips a file counts the times that its copy has not.
func TestResumeLostTimes(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	early := time.Date(1960, 1, 2, 3, 4, 5, 6, time.UTC)
	for name, set := range map[string]vfs.SetAttr{
		"neither": {Valid: vfs.MaskMtime | vfs.MaskAtime, Mtime: early, Atime: early},
		"mtime":   {Valid: vfs.MaskMtime | vfs.MaskAtime, Mtime: early, Atime: epoch},
		"both":    {Valid: vfs.MaskMtime | vfs.MaskAtime, Mtime: epoch, Atime: epoch},
	} {
		src.set(src.file(name, 0o644, []byte("x")), set)
	}
	dir, to := recordDir(t), newTree(t, nfsTimes{dst.fs})
	for run := range 2 {
		o, v := options(t, src, to, "copy")
		o.Record, o.ID = dir, "this job"
		s, err := Copy(t.Context(), o)
		if err != nil || s.TimesLost != 2 || s.Skipped != uint64(3*run) {
			t.Errorf("run %d: %v, %+v, want 2 lost times\n%s", run, err, s, v)
		}
	}
}

// TestResumeSweeps removes the temporaries of this job, and nothing else.
func TestResumeSweeps(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	few(src)
	dir := recordDir(t)
	r, err := openRecord(t.Context(), dir, nil, "this job")
	if err != nil {
		t.Fatal(err)
	}
	tag := fmt.Sprintf("%x-", r.identity[:4])
	if err := r.close(); err != nil {
		t.Fatal(err)
	}
	mine, others := "d/.nfsbox-"+tag+"0123456789abcdef.tmp", "d/.nfsbox-0123456789abcdef.tmp"
	dst.file(mine, 0o600, nil)
	dst.file(others, 0o600, nil)
	dst.file("d/.nfsbox-"+tag+"notes.tmp", 0o600, nil)
	o, v := options(t, src, dst, "")
	o.Record, o.ID = dir, "this job"
	if s, err := Copy(t.Context(), o); s.ExitCode(err) != ExitDone {
		t.Fatalf("%v, %+v\n%s", err, s, v)
	}
	got := dst.list(dst.root)
	if got[mine] != "" || got[others] == "" || got["d/.nfsbox-"+tag+"notes.tmp"] == "" {
		t.Errorf("temporaries: %q", dst.temps())
	}
}

func sample(i int) recorded {
	return recorded{
		key: rootKey(true).child(fmt.Sprint(i)), size: uint64(i) << 40, mtime: epoch.Add(time.Duration(i)),
		ctime: time.Unix(-5, 7), fileID: uint64(i), copied: time.Time{}, copyID: uint64(i) << 50,
	}
}

func same(a, b recorded) bool {
	return a.key == b.key && a.size == b.size && a.mtime.Equal(b.mtime) && a.ctime.Equal(b.ctime) && a.fileID == b.fileID && a.copied.Equal(b.copied) && a.copyID == b.copyID
}

// filled is a directory with a record of n entries.
func filled(t testing.TB, n int) *os.Root {
	t.Helper()
	dir := recordDir(t)
	r, err := openRecord(t.Context(), dir, nil, "id")
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := r.append(sample(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// found counts how many of the samples the record in dir has.
func found(t testing.TB, dir *os.Root, n int) int {
	t.Helper()
	r, err := openRecord(t.Context(), dir, nil, "id")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for i := range n {
		e, ok, err := r.find(sample(i).key)
		if err != nil {
			t.Fatal(err)
		}
		if ok && !same(e, sample(i)) {
			t.Errorf("entry %d is %+v", i, e)
		}
		if ok {
			count++
		}
	}
	if err := r.close(); err != nil {
		t.Fatal(err)
	}
	return count
}

func TestRecord(t *testing.T) {
	const n = 3*loadBlock + 5
	dir := filled(t, n)
	if got := found(t, dir, n+100); got != n {
		t.Errorf("%d entries found, want %d", got, n)
	}
	// The last entry of a key counts.
	r, err := openRecord(t.Context(), dir, nil, "id")
	if err != nil {
		t.Fatal(err)
	}
	changed := sample(5)
	changed.size = 99
	if err := r.append(changed); err != nil {
		t.Fatal(err)
	}
	if err := r.close(); err != nil {
		t.Fatal(err)
	}
	if r, err = openRecord(t.Context(), dir, nil, "id"); err != nil {
		t.Fatal(err)
	}
	if e, ok, err := r.find(changed.key); !ok || err != nil || !same(e, changed) {
		t.Errorf("%+v, %v, %v", e, ok, err)
	}
	if err := r.close(); err != nil {
		t.Fatal(err)
	}
}

// TestRecordTorn cuts a record at every byte, and damages every byte. The other entries are
// found, and writing goes on.
func TestRecordTorn(t *testing.T) {
	const n = 4
	whole, err := filled(t, n).ReadFile(recordName)
	if err != nil {
		t.Fatal(err)
	}
	for at := range len(whole) {
		cut := recordDir(t)
		if err := cut.WriteFile(recordName, whole[:at], 0o600); err != nil {
			t.Fatal(err)
		}
		if got, want := found(t, cut, n), max(0, at-headerSize)/entrySize; got != want {
			t.Errorf("cut at %d: %d entries, want %d", at, got, want)
		}
		r, err := openRecord(t.Context(), cut, nil, "id")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(r.append(sample(9)), r.close()); err != nil {
			t.Fatal(err)
		}
		if found(t, cut, 10) != max(0, at-headerSize)/entrySize+1 {
			t.Errorf("cut at %d: an entry that was added is lost", at)
		}
		if at < headerSize {
			continue
		}
		bad := recordDir(t)
		damaged := bytes.Clone(whole)
		damaged[at] ^= 0x10
		if err := bad.WriteFile(recordName, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := found(t, bad, n); got != n-1 {
			t.Errorf("damaged at %d: %d entries, want %d", at, got, n-1)
		}
	}
}

// TestRecordDamagedInside damages an entry far from the end: the others are found, before and
// after the record has grown so much that it has an index on disk, and when that is made anew.
func TestRecordDamagedInside(t *testing.T) {
	const n, bad, more = 3 * loadBlock, loadBlock + 7, 70_000
	dir := filled(t, n)
	b, err := dir.ReadFile(recordName)
	if err != nil {
		t.Fatal(err)
	}
	b[headerSize+bad*entrySize+20] ^= 1
	if err := dir.WriteFile(recordName, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := found(t, dir, n); got != n-1 {
		t.Errorf("%d entries found, want %d", got, n-1)
	}
	r, err := openRecord(t.Context(), dir, nil, "id")
	if err != nil {
		t.Fatal(err)
	}
	var all []recorded
	for i := n; i < more; i++ {
		all = append(all, sample(i))
	}
	if err := errors.Join(r.append(all...), r.close()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := found(t, dir, more); got != more-1 {
			t.Errorf("%d entries found, want %d", got, more-1)
		}
		if err := dir.Remove(fmt.Sprint("index.0-", more)); err != nil {
			t.Error(err)
		}
	}
}

// TestRecordIsHuge: a record that somebody has made a sparse file ends behind its entries: it is
// not read to its end, which may be years away.
func TestRecordIsHuge(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	manyFiles(src, 20)
	dir := recordDir(t)
	for run := range 2 {
		o, v := options(t, src, dst, "copy")
		o.Record, o.ID = dir, "this job"
		s, err := Copy(t.Context(), o)
		if err != nil || run == 1 && s.Skipped != 20 {
			t.Fatalf("run %d: %+v, %v\n%s", run, s, err, v)
		}
		if info, err := dir.Stat(RecordFile); err != nil || info.Size() > 1<<20 {
			t.Fatalf("run %d: the record is %v, %v", run, info, err)
		}
		f, err := dir.OpenFile(RecordFile, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(f.Truncate(1<<42), f.Close()); err != nil {
			t.Skipf("NO SPARSE FILES OF 4 TiB here: %v", err)
		}
	}
}

func TestRecordRefused(t *testing.T) {
	dir := filled(t, 3)
	whole, err := dir.ReadFile(recordName)
	if err != nil {
		t.Fatal(err)
	}
	version := bytes.Clone(whole)
	version[11]++
	header := bytes.Clone(whole)
	header[20] ^= 1
	for what, b := range map[string][]byte{
		"text": []byte(strings.Repeat("text ", 30)), "short text": []byte("text"), "version": version, "header": header,
	} {
		dir := recordDir(t)
		if err := dir.WriteFile(recordName, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openRecord(t.Context(), dir, nil, "id"); !errors.Is(err, ErrRecord) {
			t.Errorf("%s: %v", what, err)
		}
		if after, err := dir.ReadFile(recordName); err != nil || !bytes.Equal(after, b) {
			t.Errorf("%s: the file was changed", what)
		}
	}
	if _, err := openRecord(t.Context(), dir, nil, "another job"); !errors.Is(err, ErrRecord) {
		t.Errorf("another job's: %v", err)
	}
	first, err := openRecord(t.Context(), dir, nil, "id")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		if _, err := openRecord(t.Context(), dir, nil, "id"); !errors.Is(err, ErrRecord) {
			t.Errorf("in use: %v", err)
		}
	})
	if err := first.close(); err != nil {
		t.Fatal(err)
	}
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	o, _ := options(t, src, dst, "copy")
	o.Record, o.ID = dir, "another job"
	if s, err := Copy(t.Context(), o); s.ExitCode(err) != ExitRefused {
		t.Errorf("another job's: %v", err)
	}
}

// TestRecordOfEarlierVersions: records that earlier programs wrote are read, and keep their
// versions. The files in testdata are theirs.
func TestRecordOfEarlierVersions(t *testing.T) {
	for version, size := range map[uint32]int{1: entrySizeOf1, 2: entrySize} {
		name := fmt.Sprint("record-", version)
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		dir := recordDir(t)
		if err := dir.WriteFile(recordName, b, 0o600); err != nil {
			t.Fatal(err)
		}
		for run := range 2 {
			r, err := openRecord(t.Context(), dir, nil, "id")
			if err != nil {
				t.Fatal(err)
			}
			for i := range 3 + run {
				want := sample(i)
				if version == 1 {
					want.copyID = 0
				}
				if i == 1 {
					want.listed, want.xattr = true, true
				}
				want.key = rootKey(true).child(fmt.Sprint(i))
				if key := r.fileKey(rootKey(true), fmt.Sprint(i)); key != want.key {
					t.Errorf("version %d: key %x", version, key)
				}
				if e, ok, err := r.find(want.key); err != nil || !ok || !same(e, want) || e.listed != want.listed || e.xattr != want.xattr {
					t.Errorf("version %d, entry %d: %+v, %v, %v", version, i, e, ok, err)
				}
			}
			if err := errors.Join(r.append(sample(3)), r.close()); err != nil {
				t.Fatal(err)
			}
		}
		after, err := dir.ReadFile(recordName)
		if err != nil || len(after) != headerSize+5*size || !bytes.HasPrefix(after, b) {
			t.Errorf("version %d: it has %d bytes, %v", version, len(after), err)
		}
	}
}

// TestFileKeys: files of one directory have keys that begin alike, and are all different.
func TestFileKeys(t *testing.T) {
	r := &record{version: recordVersion}
	met := make(map[pathKey]bool)
	for dir := range 10 {
		in := rootKey(true).child(fmt.Sprint(dir))
		for file := range 1000 {
			key := r.fileKey(in, fmt.Sprint(file))
			if met[key] || !bytes.Equal(key[:8], in[:8]) || key[15]&verifiedBit != 0 {
				t.Fatalf("key %x in %x", key, in)
			}
			met[key] = true
		}
	}
}

// TestRecordOfVersion1: a record of an earlier program is read, and keeps its version. What
// it lacks does no harm.
func TestRecordOfVersion1(t *testing.T) {
	old := record{identity: sha256.Sum256([]byte("id")), version: 1}
	b := old.header()
	for i := range 3 {
		e := sample(i)
		b = e.append(b, entrySizeOf1)
	}
	dir := recordDir(t)
	if err := dir.WriteFile(recordName, append(b, "torn"...), 0o600); err != nil {
		t.Fatal(err)
	}
	for n := 3; n < 6; n++ {
		r, err := openRecord(t.Context(), dir, nil, "id")
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			want := sample(i)
			want.copyID = 0
			if e, ok, err := r.find(want.key); err != nil || !ok || !same(e, want) {
				t.Errorf("entry %d of %d: %+v, %v, %v", i, n, e, ok, err)
			}
		}
		if err := errors.Join(r.append(sample(n)), r.close()); err != nil {
			t.Fatal(err)
		}
		after, err := dir.ReadFile(recordName)
		if err != nil || len(after) != headerSize+(n+1)*entrySizeOf1 || !bytes.HasPrefix(after, b) {
			t.Errorf("with %d entries it has %d bytes, %v", n+1, len(after), err)
		}
	}
	linked := vfs.Attr{Valid: vfs.MaskV3, Type: vfs.TypeReg, Nlink: 2, FileID: 7}
	if e := (recorded{}); !e.isCopy(&linked) {
		t.Error("a copy of which the record has no file id is taken for another file")
	}
}

// TestRecordWriteFails: a record that cannot be written ends the job, since a record was
// asked for.
func TestRecordWriteFails(t *testing.T) {
	dir := filled(t, 1)
	r, err := openRecord(t.Context(), dir, nil, "id")
	if err != nil {
		t.Fatal(err)
	}
	if err := r.file.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := r.append(sample(1)); !errors.Is(err, os.ErrClosed) {
			t.Errorf("error %v", err)
		}
	}
}

// FuzzRecord loads arbitrary bytes after a valid header.
func FuzzRecord(f *testing.F) {
	good := sample(1)
	f.Add(good.append(nil, entrySize))
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := recordDir(t)
		r := record{version: recordVersion}
		file, err := dir.Create(recordName)
		if err != nil {
			t.Fatal(err)
		}
		r.file = file
		if _, err := file.Write(append(r.header(), b...)); err != nil {
			t.Fatal(err)
		}
		if err := r.load(t.Context(), dir); err != nil {
			t.Fatal(err)
		}
		size, err := file.Seek(0, io.SeekEnd)
		if err != nil || size != r.offset(r.index.Entries()) || size > int64(headerSize+len(b)) {
			t.Errorf("%d bytes are left for %d entries, %v", size, r.index.Entries(), err)
		}
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
}

// TestResumeOptions: a job that is resumed with other options applies them to files that were
// copied before, too.
func TestResumeOptions(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	few(src)
	for _, path := range []string{"a", "d/c", "e/f1"} {
		src.set(src.at(path), vfs.SetAttr{Valid: vfs.MaskUID, UID: 1000})
	}
	dir := recordDir(t)
	run := func(owner, verify bool) Summary {
		t.Helper()
		o, v := options(t, src, dst, "copy")
		o.Record, o.ID, o.Owner, o.Verify = dir, "this job", owner, verify
		s, err := Copy(t.Context(), o)
		if s.ExitCode(err) != ExitDone {
			t.Fatalf("%v, %+v\n%s", err, s, v)
		}
		return s
	}
	all := run(false, false).Files
	if s := run(false, false); s.Files != 0 || s.Skipped != all {
		t.Errorf("the same again: %+v", s)
	}
	if s := run(true, false); s.Files != all {
		t.Errorf("with owners: %+v", s)
	}
	if d := diff(src.list(src.root), dst.list(dst.at("copy"))); d != "" {
		t.Error(d)
	}
	if s := run(true, true); s.Skipped != all || s.Verified != all {
		t.Errorf("verified: %+v", s)
	}
	if s := run(true, true); s.Skipped != all || s.Verified != all {
		t.Errorf("verified before: %+v", s)
	}
	if s := run(true, false); s.Skipped != all || s.Files != 0 {
		t.Errorf("not verified again: %+v", s)
	}
}

// TestResumeVerifyDiffers: with Verify, a copy of an earlier run with other bytes but the same
// size and times is copied again.
func TestResumeVerifyDiffers(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	few(src)
	dir := recordDir(t)
	run := func(verify bool) (Summary, *events) {
		t.Helper()
		o, v := options(t, src, dst, "copy")
		o.Record, o.ID, o.Verify = dir, "this job", verify
		s, err := Copy(t.Context(), o)
		if s.ExitCode(err) != ExitDone {
			t.Fatalf("%v, %+v\n%s", err, s, v)
		}
		return s, v
	}
	run(false)
	was, err := dst.fs.GetAttr(t.Context(), dst.at("copy/d/c"), vfs.MaskV3)
	if err != nil {
		t.Fatal(err)
	}
	dst.write(dst.at("copy/d/c"), 3, []byte("rot"))
	dst.set(dst.at("copy/d/c"), vfs.SetAttr{Valid: vfs.MaskMtime, Mtime: was.Mtime})
	s, v := run(true)
	if s.Files != 1 || !strings.Contains(v.String(), `note  "d/c": the copy of an earlier run differs at byte 3`) {
		t.Errorf("%+v\n%s", s, v)
	}
	if got := dst.read(dst.at("copy/d/c"), 10); !bytes.Equal(got, pattern(10, 2)) {
		t.Errorf("the copy holds %q", got)
	}
}

// TestResumeSingleSweeps: a job of one file removes what a killed run has left.
func TestResumeSingleSweeps(t *testing.T) {
	src, dst := mem(t, memfs.Options{}), mem(t, memfs.Options{})
	src.file("file", 0o644, pattern(100, 1))
	dir := recordDir(t)
	for range 2 {
		r, err := openRecord(t.Context(), dir, nil, "this job")
		if err != nil {
			t.Fatal(err)
		}
		tag := fmt.Sprintf("%x-", r.identity[:4])
		if err := r.close(); err != nil {
			t.Fatal(err)
		}
		dst.file(".nfsbox-"+tag+"0123456789abcdef.tmp", 0o600, nil)
		o, v := options(t, src, dst, "copy")
		o.Source.Handle, o.Record, o.ID = src.at("file"), dir, "this job"
		if s, err := Copy(t.Context(), o); s.ExitCode(err) != ExitDone {
			t.Fatalf("%v, %+v\n%s", err, s, v)
		}
		if temps := dst.temps(); len(temps) > 0 {
			t.Errorf("left behind: %q", temps)
		}
	}
}

// TestResumeAfterInterruption: files that were copied before an interruption are not copied
// again, though no directory was finished: they are made stable at the end, and recorded.
func TestResumeAfterInterruption(t *testing.T) {
	var out hooks
	src, dst := mem(t, memfs.Options{}), newTree(t, memfs.New(memfs.Options{Fault: out.fault}))
	manyFiles(src, 200) // too few in each directory for a sync on the way
	dir := recordDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var opens atomic.Int64
	out.set(func(_ int, op string, _ vfs.Handle) error {
		if op == "open" && opens.Add(1) == 150 {
			cancel()
		}
		return nil
	})
	var done uint64
	for run := range 2 {
		o, v := options(t, src, dst, "copy")
		o.Record, o.ID, o.Dest.FS = dir, "this job", newSyncing(dst.fs)
		s, err := Copy(ctx, o)
		if run == 0 {
			if done = s.Files; !errors.Is(err, context.Canceled) || done == 0 {
				t.Fatalf("%v, %+v\n%s", err, s, v)
			}
			ctx = t.Context()
			continue
		}
		if err != nil || s.Skipped != done || s.Files != 200-done {
			t.Errorf("%d files were done, and then: %v, %+v\n%s", done, err, s, v)
		}
	}
}

// TestRecordFlags: the flags of a copy are kept, and do not change its time.
func TestRecordFlags(t *testing.T) {
	for _, flags := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
		r := recorded{key: pathKey{}.child("x"), size: 1, mtime: epoch, ctime: epoch, copied: time.Unix(1, 999_999_999), listed: flags[0], xattr: flags[1]}
		got, ok := parseEntry(r.append(nil, entrySize))
		if !ok || !got.copied.Equal(r.copied) || got.listed != r.listed || got.xattr != r.xattr {
			t.Errorf("%+v came back as %+v, %v", r, got, ok)
		}
	}
}

// TestCopyIDs: copies with other file ids than before are believed without a comparison once
// enough more have proved the same than have kept theirs, and none has differed.
func TestCopyIDs(t *testing.T) {
	for _, c := range []struct {
		kept, same int
		differed   bool
		doubt      bool
	}{
		{0, 0, false, true}, {0, maxRenewed - 1, false, true}, {0, maxRenewed, false, false},
		{5, maxRenewed + 4, false, true}, {5, maxRenewed + 5, false, false}, {0, maxRenewed, true, true},
	} {
		var k copyIDs
		for range c.kept {
			k.keep()
		}
		for range c.same {
			k.compared(true)
		}
		if c.differed {
			k.compared(false)
		}
		if k.doubt() != c.doubt {
			t.Errorf("%+v: doubted: %v", c, !c.doubt)
		}
	}
}

// TestLazyRecord: a record that may lose its last entries writes them together, and all of them
// when it is closed.
func TestLazyRecord(t *testing.T) {
	dir := recordDir(t)
	r, err := openRecord(t.Context(), dir, nil, "id")
	if err != nil {
		t.Fatal(err)
	}
	r.lazy = true
	size := func() int64 {
		info, err := dir.Stat(recordName)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	const n = 2*lazyBlock/entrySize + 3
	for i := range n {
		if err := r.append(recorded{key: rootKey(true).child(fmt.Sprint(i))}); err != nil {
			t.Fatal(err)
		}
		if missing := int64(headerSize+(i+1)*entrySize) - size(); missing < 0 || missing >= lazyBlock {
			t.Fatalf("%d entries: %d bytes are missing", i+1, missing)
		}
	}
	if err := r.close(); err != nil {
		t.Fatal(err)
	}
	if r, err = openRecord(t.Context(), dir, nil, "id"); err != nil || r.index.Entries() != n {
		t.Fatalf("%d entries of %d, %v", r.index.Entries(), n, err)
	}
	if err := r.close(); err != nil {
		t.Error(err)
	}
}
