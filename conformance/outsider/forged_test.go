//go:build linux

package outsider

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// maxForgedMemory bounds what a run of the command may take when it reads what an enemy has written: a quarter of what the bombs among
// the forgeries are unpacked to.
const maxForgedMemory = 256 << 20

// maxForgedTime bounds the processor time of such a run. Without a bound of their own, the repetitions among the forgeries take minutes.
const maxForgedTime = 15 * time.Second

// forger writes snapshots into a store that the command has made, in the formats that packages object/layout and snapshot describe.
type forger struct {
	*vault
}

// object stores bytes under a key, with the trailer that each object has.
func (f *forger) object(key string, b []byte) {
	f.Helper()
	crc := func(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }
	sum := sha256.Sum256(b)
	t := []byte("NFSBOXOB\x00\x00\x00\x01")
	t = binary.BigEndian.AppendUint32(t, crc([]byte(key)))
	t = binary.BigEndian.AppendUint64(t, uint64(len(b)))
	t = binary.BigEndian.AppendUint32(append(t, sum[:]...), crc(b))
	t = binary.BigEndian.AppendUint32(t, crc(t))
	name := path.Base(key)
	f.write(filepath.Join(f.store, path.Dir(key), "="+name[:2], name), string(b)+string(t))
}

// content stores bytes under their own sum.
func (f *forger) content(b []byte) (sum string) {
	f.Helper()
	s := sha256.Sum256(b)
	sum = hex.EncodeToString(s[:])
	f.object("sha256/"+sum, b)
	return sum
}

// framed is b as zstd (RFC 8878), in blocks that are as they are; and with more, so many more blocks of 128 KiB of one byte each.
func framed(b []byte, more int) []byte {
	const block = 128 << 10
	out := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, 13 << 3} // a window of 8 MiB; the size is not said
	head := func(kind, n int, last bool) {
		h := uint32(n<<3 | kind<<1)
		if last {
			h |= 1
		}
		out = append(out, byte(h), byte(h>>8), byte(h>>16))
	}
	for len(b) > block {
		head(0, block, false)
		out, b = append(out, b[:block]...), b[block:]
	}
	head(0, len(b), more == 0)
	out = append(out, b...)
	for i := range more {
		head(1, block, i == more-1)
		out = append(out, 0)
	}
	return out
}

// forgery is a snapshot that an enemy has made.
type forgery struct {
	name  string
	lines string // of the list of the top directory, behind its head
	// more are the objects of the numbers from 1 on; number 0 is the list.
	more [][]byte
	// apart are objects that have no number.
	apart [][]byte
	// spoil changes the sums of the numbers, or the root; nil: neither.
	spoil func(sums []byte, root map[string]any) []byte
	ls    int  // the status of ls
	whole bool // there is nothing wrong with it: check is content. Only what it does matters
}

// put stores the snapshot.
func (f *forger) put(x *forgery) {
	f.Helper()
	const head = `{"dir":""}` + "\n"
	lines := []byte(head + x.lines)
	var sums []byte
	for _, b := range append([][]byte{framed(lines, 0)}, x.more...) {
		sum, err := hex.DecodeString(f.content(b))
		f.no(err)
		sums = append(sums, sum...)
	}
	for _, b := range x.apart {
		f.content(b)
	}
	root := map[string]any{
		"magic": "nfsbox snapshot", "version": 1, "objects": len(sums) / sha256.Size,
		"snapshot": map[string]any{"name": x.name, "time": "2026-01-01T00:00:00Z", "complete": true, "time_delta": 1},
		"root":     json.RawMessage(entry("", 2, fmt.Sprintf(`"list":{"part":0,"len":%d}`, len(lines)))),
	}
	if x.spoil != nil {
		sums = x.spoil(sums, root)
	}
	if root["tables"] == nil {
		root["tables"] = []any{map[string]any{"n": len(sums), "sum": f.content(sums)}}
	}
	line, err := json.Marshal(root)
	f.no(err)
	seal := sha256.Sum256(line)
	f.object("snapshots/"+x.name+"/20260101t000000.000z", fmt.Appendf(line, "\n%x\n", seal))
}

// entry is a line of a list, with all attributes that NFSv3 has: bits 0 to 13 but for that of the change counter, 9.
func entry(name string, kind int, rest string) string {
	quoted, _ := json.Marshal(name) // of a string
	return fmt.Sprintf(`{"name":%s,"type":%d,"has":15871,"mode":493,"nlink":1,"uid":0,"gid":0,"size":0,"id":%d,"fsid":[1,1],`+
		`"atime":[0,0],"mtime":[0,0],"ctime":[0,0],%s}`+"\n", quoted, kind, 100*kind+len(name), rest)
}

// file is the line of a file "f".
func file(size, content string) string { return entry("f", 1, `"size":`+size+`,"content":`+content) }

// forgeries are what an enemy may try. 2^62 is 4611686018427387904.
func forgeries() []forgery {
	const huge = "4611686018427387904"
	nowhere := strings.Repeat("0", 64)
	bomb := framed(nil, 8192) // 1 GiB
	bombSum := sha256.Sum256(bomb)
	dir := func(list string) string { return entry("d", 2, `"list":`+list) }
	inner := `{"dir":"way"}` + "\n" + entry("evil", 5, `"target":"x"`)
	all := []forgery{
		{name: "slash", lines: entry("a/b", 5, `"target":"x"`), ls: 2},
		{name: "dots", lines: entry("..", 2, `"list":{"part":0,"len":11}`), ls: 2},
		{name: "nul", lines: entry("a\x00b", 5, `"target":"x"`), ls: 2},
		{name: "hugepiece", lines: file(huge, `{"pieces":[{"n":`+huge+`,"sum":"`+nowhere+`"}]}`), ls: 2},
		{name: "hugelist", lines: dir(`{"part":0,"len":` + huge + `}`), ls: 2},
		{name: "hugefile", lines: file(huge, `{"holes":[{"off":0,"len":`+huge+`}]}`), whole: true},
		{name: "beyond", lines: file("100", `{"pieces":[{"n":100,"sum":"`+nowhere+`","pack":1,"at":5}]}`), more: [][]byte{[]byte("a short pack")}},
		{name: "nosuch", lines: file("5", `{"pieces":[{"n":5,"sum":"`+nowhere+`"}]}`)},
		{name: "circle", lines: dir(`{"part":0,"len":11}`)},
		{name: "bombpart", lines: dir(`{"part":1,"len":11}`), more: [][]byte{bomb}},
		{name: "bombpiece", more: [][]byte{bomb}, lines: file("16777216", fmt.Sprintf(`{"pieces":[{"n":16777216,"z":%d,"sum":"%x"}]}`, len(bomb), bombSum))},
		{name: "bombtop", lines: entry("a", 5, `"target":"x"`), more: [][]byte{bomb}, ls: 2, spoil: func(sums []byte, _ map[string]any) []byte {
			return append(slices.Clone(sums[sha256.Size:]), sums[:sha256.Size]...)
		}},
		{name: "deep", lines: entry("a", 5, `"target":`+strings.Repeat("[", 200_000)), ls: 2},
		{name: "counts", ls: 2, spoil: func(sums []byte, root map[string]any) []byte {
			root["objects"] = 100_000
			return sums
		}},
		{name: "nopart", ls: 2, spoil: func(sums []byte, _ map[string]any) []byte { return make([]byte, len(sums)) }},
		{name: "notable", ls: 2, spoil: func(sums []byte, root map[string]any) []byte {
			root["tables"] = []any{map[string]any{"n": len(sums), "sum": nowhere}}
			return sums
		}},
		// One of 5 names, of which the others are not there.
		{name: "links", lines: entry("f", 1, `"nlink":5,"id":7,"size":0,"content":{}`), whole: true},
		// A link that leads out, and a directory of the same name with something in it.
		{name: "through", ls: 2, more: [][]byte{framed([]byte(inner), 0)},
			lines: entry("way", 5, `"target":"../../outside"`) + entry("way", 2, fmt.Sprintf(`"list":{"part":1,"len":%d}`, len(inner)))},
	}
	return append(all, repetitions()...)
}

// repetitions name a few objects again and again.
func repetitions() []forgery {
	const names, numbers = 1000, 16_000 // of a table
	var lines strings.Builder
	for i := range names {
		lines.WriteString(entry(fmt.Sprintf("n%05d", i), 5, `"target":"x"`))
	}
	// large are more parts than a reader keeps unpacked, of 8 MiB each. Their first lines are those of names.
	var large [][]byte
	for i := range 8 {
		large = append(large, framed(fmt.Appendf([]byte(lines.String()), "%d", i), 61))
	}
	index := func(number func(i int) int) (index []byte, list string) {
		index = []byte(`{"dir":"d"}` + "\n")
		for i := range numbers {
			index = fmt.Appendf(index, `{"first":"n%05d","part":%d}`+"\n", i, number(i))
		}
		return index, fmt.Sprintf(`{"part":0,"index":{"n":%d,"sum":"%x"}}`, len(index), sha256.Sum256(index))
	}
	// each gives the parts many numbers, one after another.
	each := func(sums []byte, root map[string]any) []byte {
		parts := sums[sha256.Size:]
		all := slices.Clone(sums)
		for len(all) < (numbers+1)*sha256.Size {
			all = append(all, parts...)
		}
		all = all[:(numbers+1)*sha256.Size]
		root["objects"] = numbers + 1
		return all
	}
	var list []forgery
	for name, parts := range map[string][][]byte{"samenames": {framed([]byte(lines.String()), 0)}, "largeparts": large} {
		b, l := index(func(i int) int { return i + 1 })
		list = append(list, forgery{name: name, lines: entry("d", 2, `"list":`+l), more: parts, apart: [][]byte{b}, spoil: each})
	}
	b, l := index(func(i int) int { return 1 + i%len(large) })
	list = append(list, forgery{name: "onenumber", lines: entry("d", 2, `"list":`+l), more: large, apart: [][]byte{b}})
	return list
}

// tried runs the command, which ends in good order, and within its memory.
func (f *forger) tried(name string, args ...string) *result {
	f.Helper()
	cmd := f.command(args...)
	r := f.finish(cmd)
	if used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); !ok || used.Maxrss<<10 > maxForgedMemory {
		f.Errorf("%s: %v took %d KiB", name, args, used.Maxrss)
	}
	if took := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(); took > maxForgedTime {
		f.Errorf("%s: %v took %v of the processor", name, args, took)
	}
	if r.status > 4 || strings.Contains(r.stderr, "goroutine ") || len(r.stdout)+len(r.stderr) > 1<<20 {
		f.Errorf("%s: %v: status %d\n%.2000s\n%.2000s", name, args, r.status, r.stdout, r.stderr)
	}
	return r
}

// TestForgedStore has snapshots that an enemy has written into a store: what can be is shown and restored, all else is an error, memory stays
// bounded, and nothing is written outside of the destination.
func TestForgedStore(t *testing.T) {
	b := newBox(t)
	f := &forger{&vault{box: b, tree: b.path("tree"), store: b.path("store"), verbs: make(map[string]bool)}}
	b.write(b.path("tree", "a"), "b")
	b.write(b.path("outside", "mine"), "as it was")
	if !f.has("snapshots", "check") {
		t.Skip("NOT TESTED: this command keeps no snapshots")
	}
	b.must(0, f.backup()...)
	all := forgeries()
	for i := range all {
		f.put(&all[i])
	}
	before := b.names(b.dir)
	b.no(os.Mkdir(b.path("out"), 0o755))
	for i := range all {
		x := &all[i]
		at := f.store + "::" + x.name
		if r := f.tried(x.name, "ls", "-l", at); r.status != x.ls {
			t.Errorf("%s: ls ends with %d, want %d: %s%s", x.name, r.status, x.ls, r.stdout, r.stderr)
		}
		if x.apart != nil {
			f.tried(x.name, "find", at)
		}
		if r := f.tried(x.name, "restore", "-q", "--no-owner", at, b.path("out", x.name)); !x.whole && r.status == 0 {
			t.Errorf("%s: it is restored: %s", x.name, r.stderr)
		}
	}
	hurt := make(map[string]bool)
	r := f.tried("all", "snapshots", "check", "--json", "--read-data", "-q", f.store)
	for line := range strings.Lines(r.stdout) {
		var e struct{ Hurts []struct{ Snapshot string } }
		b.no(json.Unmarshal([]byte(line), &e))
		for _, h := range e.Hurts {
			name, _, _ := strings.Cut(h.Snapshot, "@")
			hurt[name] = true
		}
	}
	for i := range all {
		if x := &all[i]; hurt[x.name] == x.whole {
			t.Errorf("%s: check says that it is hurt: %v", x.name, hurt[x.name])
		}
	}
	if r.status != 2 || hurt["t"] {
		t.Errorf("check: status %d\n%s", r.status, r.stderr)
	}
	after := slices.DeleteFunc(b.names(b.dir), func(name string) bool {
		return name == "out" || strings.HasPrefix(name, "out/") || strings.HasPrefix(name, ".state")
	})
	before = slices.DeleteFunc(before, func(name string) bool { return strings.HasPrefix(name, ".state") })
	if !slices.Equal(before, after) || b.text(b.path("outside", "mine")) != "as it was" {
		t.Errorf("outside of the destination there is\n%q, and there was\n%q", after, before)
	}
}
