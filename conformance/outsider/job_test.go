//go:build linux

package outsider

import (
	"crypto/sha256"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// swap gives two files each other's name.
func (b *box) swap(one, other string) {
	b.Helper()
	b.no(os.Rename(one, one+" on its way"))
	b.no(os.Rename(other, one))
	b.no(os.Rename(one+" on its way", other))
}

// alike writes n files of one size and time below dir, no two of the same text.
func (b *box) alike(dir string, n, size int) {
	b.Helper()
	for i := range n {
		name := filepath.Join(dir, fmt.Sprintf("%03d", i))
		b.write(name, string(pattern(size, byte(i))))
		b.no(os.Chtimes(name, b.before(), b.before()))
	}
}

// TestJobFindsSwappedCopies: two copies of one size and time have got each other's name. The
// job copies both anew, with and without --verify, and passes over the others.
func TestJobFindsSwappedCopies(t *testing.T) {
	b := newBox(t)
	b.alike(b.path("src"), 5, 1000)
	b.no(os.Mkdir(b.path("srv"), 0o755))
	url := b.serve(b.path("srv")).url
	for job, dest := range map[string]string{"local": b.path("local"), "nfs": url + "dst"} {
		dst := b.path("local")
		if job == "nfs" {
			dst = b.path("srv", "dst")
		}
		for _, flag := range []string{"--parallel=0", "--verify"} {
			args := []string{"cp", "-r", "--json", "--job", job, flag, b.path("src"), dest}
			b.must(0, args...)
			b.swap(filepath.Join(dst, "001"), filepath.Join(dst, "003"))
			if r := b.must(0, args...); r.count(b, "files") != 2 || r.count(b, "skipped") != 3 {
				t.Errorf("%s %s: two files were to be copied: %s", job, flag, r.stdout)
			}
			b.same(b.path("src"), dst)
			if r := b.must(0, args...); r.count(b, "skipped") != 5 {
				t.Errorf("%s %s: nothing was left to be copied: %s", job, flag, r.stdout)
			}
		}
	}
}

// TestJobFindsTurnedCopies: each of many copies of one size and time has got the name of the
// next. The job copies them all anew.
func TestJobFindsTurnedCopies(t *testing.T) {
	const files = 200
	b := newBox(t)
	b.alike(b.path("src"), files, 1000)
	dst := b.path("dst")
	args := []string{"cp", "-r", "--json", "--job", "j", b.path("src"), dst}
	b.must(0, args...)
	b.no(os.Rename(filepath.Join(dst, "000"), filepath.Join(dst, "last")))
	for i := range files - 1 {
		b.no(os.Rename(filepath.Join(dst, fmt.Sprintf("%03d", i+1)), filepath.Join(dst, fmt.Sprintf("%03d", i))))
	}
	b.no(os.Rename(filepath.Join(dst, "last"), filepath.Join(dst, fmt.Sprintf("%03d", files-1))))
	if r := b.must(0, args...); r.count(b, "files") != files {
		t.Errorf("%d of %d files were copied anew", r.count(b, "files"), files)
	}
	b.same(b.path("src"), dst)
}

// TestJobVerifiesWhatItPassesOver: --verify compares the copies of earlier runs as it does
// those of its own, though a run before has compared them.
func TestJobVerifiesWhatItPassesOver(t *testing.T) {
	b := newBox(t)
	b.alike(b.path("src"), 4, 1000)
	args := []string{"cp", "-r", "--json", "--verify", "--job", "j", b.path("src"), b.path("dst")}
	b.must(0, args...)
	rotten := b.path("dst", "002")
	text := []byte(b.text(rotten))
	text[500] ^= 1
	b.no(os.WriteFile(rotten, text, 0o600)) // the same file, of the same size
	b.no(os.Chtimes(rotten, b.before(), b.before()))
	if r := b.must(0, args...); r.count(b, "files") != 1 || r.count(b, "skipped") != 3 || r.count(b, "verified") != 4 {
		t.Errorf("one file was to be copied, and four compared: %s", r.stdout)
	}
	b.same(b.path("src"), b.path("dst"))
}

// TestJobReadsNothingTwice: a job that is run again reads no file. It reads some where all
// copies have got other file ids, as by a file system that numbers anew with each mount; and
// it copies none of them.
func TestJobReadsNothingTwice(t *testing.T) {
	b := newBox(t)
	const files, size = 200, 20_000
	b.alike(b.path("src"), files, size)
	b.no(os.Mkdir(b.path("srv"), 0o755))
	p := b.proxy(b.serve(b.path("srv")), nil)
	args := []string{"cp", "-r", "--json", "--job", "j", "--parallel=8", b.path("src"), p.url() + "dst"}
	b.must(0, args...)
	again := func(what string, most int64) {
		t.Helper()
		before := p.came.Load()
		if r := b.must(0, args...); r.count(b, "skipped") != files {
			t.Errorf("%s: nothing was to be copied: %s", what, r.stdout)
		}
		if came := p.came.Load() - before; came > most {
			t.Errorf("%s: %d bytes came, of %d in the files", what, came, files*size)
		}
	}
	again("the same", files*size/10)
	for _, name := range b.names(b.path("srv", "dst")) {
		path := b.path("srv", "dst", name)
		b.no(os.WriteFile(path+".new", []byte(b.text(path)), 0o644))
		b.no(os.Chtimes(path+".new", b.before(), b.mtime(path)))
		b.no(os.Rename(path+".new", path))
	}
	again("with other file ids", files*size/4)
	again("once more", files*size/4)
}

// TestJobOfOtherPlaces: a job is run with a DEST that was mistyped, and with another SOURCE. It
// says what it copies, asks for nothing to be removed, and goes on with its own.
func TestJobOfOtherPlaces(t *testing.T) {
	b := newBox(t)
	b.alike(b.path("src"), 3, 100)
	b.alike(b.path("source"), 3, 100)
	b.no(os.Mkdir(b.path("backup"), 0o755))
	for job, dest := range map[string]string{"into": b.path("backup"), "becomes": b.path("copy")} {
		args := []string{"cp", "-r", "--json", "--job", job, b.path("src")}
		b.must(0, append(args, dest)...)
		for what, r := range map[string]*result{
			"another DEST":   b.run(append(args, b.path("bakcup"))...),
			"another SOURCE": b.run("cp", "-r", "--job", job, b.path("source"), dest),
		} {
			if r.status != 1 || strings.Contains(r.stderr, "rm ") || strings.Contains(r.stderr, "was a directory") {
				t.Errorf("%s, %s: exit status %d\n%s", job, what, r.status, r.stderr)
			}
			for _, says := range []string{"job " + job, b.path("src") + " ", dest, "another --job"} {
				if !strings.Contains(r.stderr, says) {
					t.Errorf("%s, %s: nothing is said of %q:\n%s", job, what, says, r.stderr)
				}
			}
		}
		if _, err := os.Lstat(b.path("bakcup")); err == nil {
			t.Errorf("%s: the DEST that was mistyped was made", job)
		}
		if r := b.must(0, append(args, dest)...); r.count(b, "skipped") != 3 {
			t.Errorf("%s: the job does not go on: %s", job, r.stdout)
		}
	}
}

// TestJobHasAName: an empty name, as of a variable that is not set, is refused. Nothing is
// copied without the record that was asked for.
func TestJobHasAName(t *testing.T) {
	b := newBox(t)
	b.write(b.path("src", "f"), "text")
	for _, flags := range [][]string{{"--job", ""}, {"--job="}} {
		r := b.run(append(append([]string{"cp", "-r"}, flags...), b.path("src"), b.path("dst"))...)
		if _, err := os.Lstat(b.path("dst")); r.status != 1 || !strings.Contains(r.stderr, "--job") || err == nil {
			t.Errorf("%q: exit status %d, DEST: %v\n%s", flags, r.status, err, r.stderr)
		}
	}
}

// firstRecord writes the record of a job as the first builds did: one entry for each file of
// src, whose copies are in dst.
func (b *box) firstRecord(job, src, dst string) {
	b.Helper()
	table := crc32.MakeTable(crc32.Castagnoli)
	moment := func(to []byte, sec, nsec int64) []byte { return u32(u64(to, uint64(sec)), uint32(nsec)) }
	id := sha256.Sum256([]byte("cp\x00" + src + "\x00" + dst))
	record := append(u32([]byte("NFSBOXCP"), 1, 0), id[:]...)
	record = u32(record, crc32.Checksum(record, table))
	for _, name := range b.names(src) {
		var of, copied syscall.Stat_t
		b.no(syscall.Stat(filepath.Join(src, name), &of))
		b.no(syscall.Stat(filepath.Join(dst, name), &copied))
		if of.Mode&syscall.S_IFMT != syscall.S_IFREG {
			continue
		}
		var key [16]byte
		for _, part := range strings.Split(name, "/") {
			sum := sha256.Sum256(append(key[:], part...))
			key = [16]byte(sum[:])
		}
		entry := u64(key[:], uint64(of.Size))
		entry = moment(entry, of.Mtim.Sec, of.Mtim.Nsec)
		entry = moment(entry, of.Ctim.Sec, of.Ctim.Nsec)
		entry = moment(u64(entry, of.Ino), copied.Mtim.Sec, copied.Mtim.Nsec)
		record = append(record, u32(entry, crc32.Checksum(entry, table))...)
	}
	b.write(b.path(".state", "nfsbox", "jobs", job, "target"), "nfsbox-target-1 itself\n")
	b.write(b.path(".state", "nfsbox", "jobs", job, "copied"), string(record))
}

// TestJobOfTheFirstBuilds: a job that one of the first builds has begun goes on. It says what
// its record does not know. A copy that has another's mode by now gets its own, and one that
// has changed is made anew.
func TestJobOfTheFirstBuilds(t *testing.T) {
	b := newBox(t)
	for _, dir := range []string{".", "d", "d/e/f"} {
		b.alike(b.path("src", dir), 10, 100)
	}
	b.must(0, "cp", "-r", b.path("src"), b.path("dst"))
	b.firstRecord("j", b.path("src"), b.path("dst"))
	b.no(os.Chmod(b.path("dst", "d", "003"), 0o606))
	b.write(b.path("dst", "d", "e", "f", "005"), "somebody else's")
	args := []string{"cp", "-r", "--json", "--job", "j", b.path("src"), b.path("dst")}
	for _, files := range []int{1, 0} {
		r := b.must(0, args...)
		if r.count(b, "files") != files || r.count(b, "skipped") != 30-files {
			t.Errorf("%d files were to be copied: %s", files, r.stdout)
		}
		if !strings.Contains(r.stdout, "earlier version") {
			t.Errorf("nothing is said of the record: %s", r.stdout)
		}
		b.same(b.path("src"), b.path("dst"))
	}
}
