package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/nfsbox/nfsbox/internal/server/object"
	"github.com/nfsbox/nfsbox/vfs"
)

// keys are those of all objects of a store.
func keys(t testing.TB, store object.Store) (all []string) {
	t.Helper()
	for info, err := range object.All(t.Context(), store, "") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, info.Key)
	}
	return all
}

func contentOf(t testing.TB, store object.Store, key string) []byte {
	t.Helper()
	r, info, err := store.Get(t.Context(), key, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, info.Size)
	var all bytes.Buffer
	if _, err := all.ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	copy(b, all.Bytes())
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	return b
}

func put(t testing.TB, store object.Store, key string, b []byte) {
	t.Helper()
	if _, err := store.Put(t.Context(), key, bytes.NewReader(b), object.PutOptions{Size: int64(len(b))}); err != nil {
		t.Fatal(err)
	}
}

// TestDamage damages one object at a time, in a store that does not notice, and reads all. A file has its
// bytes, or there is an error that names the object.
func TestDamage(t *testing.T) {
	tr := modest(t)
	clean := object.NewMemory(object.MemoryOptions{})
	ref := take(t, tr, clean, Meta{Complete: true}).Ref()
	want := make(map[string][]byte)
	if err := each(t.Context(), tr.fs, func(path string, _ vfs.Handle, _ *vfs.Attr, content []byte) error {
		want[path] = content
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	all := keys(t, clean)
	store := object.NewMemory(object.MemoryOptions{})
	for _, key := range all {
		put(t, store, key, contentOf(t, clean, key))
	}
	for round := range 3 * len(all) {
		key := all[round%len(all)]
		whole := contentOf(t, clean, key)
		b := bytes.Clone(whole)
		switch round / len(all) {
		case 0:
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
			put(t, store, key, b)
		case 1:
			put(t, store, key, b[:r.IntN(len(b))])
		default:
			if err := store.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
		var named *DamagedError
		if err := readAll(t.Context(), store, ref, want); !errors.As(err, &named) || named.Key != key || !errors.Is(err, ErrDamaged) {
			t.Errorf("%s, damage %d: %v", key, round/len(all), err)
		}
		put(t, store, key, whole)
	}
	if err := readAll(t.Context(), store, ref, want); err != nil {
		t.Errorf("mended: %v", err)
	}
}

// readAll reads a whole snapshot, and returns the first error; errWrong if a file has wrong bytes.
func readAll(ctx context.Context, store object.Store, ref Ref, want map[string][]byte) error {
	s, err := Open(ctx, store, ref)
	if err != nil {
		return err
	}
	return each(ctx, s.FS(), func(path string, h vfs.Handle, a *vfs.Attr, content []byte) error {
		if !bytes.Equal(content, want[path]) {
			return errWrong
		}
		if a.Type == vfs.TypeReg {
			_, err := s.FS().(vfs.Xattrer).Xattrs(ctx, h)
			return err
		}
		return nil
	})
}

var errWrong = errors.New("wrong bytes")

// forged is a snapshot whose manifest an enemy has written: the lines of one part, which the root's list is.
func forged(t testing.TB, lines string, objects ...[]byte) (*Snapshot, error) {
	t.Helper()
	store := object.NewMemory(object.MemoryOptions{})
	s, err := newSink(store)
	if err != nil {
		t.Fatal(err)
	}
	sums := make([]byte, 0, 64)
	for _, b := range append([][]byte{s.enc.EncodeAll([]byte(lines), nil)}, objects...) {
		sum, err := s.raw(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sum[:]...)
	}
	table, err := s.put(t.Context(), sums)
	if err != nil {
		t.Fatal(err)
	}
	r := rootObject{Magic: magic, Version: version, Meta: Meta{Name: "test", Time: epoch}, Objects: int64(len(objects) + 1), Tables: []Piece{table}}
	root := &Entry{Attr: vfs.Attr{Valid: vfs.MaskType, Type: vfs.TypeDir}, listing: listing{Len: int64(len(lines))}}
	if r.Root, err = root.encode(nil); err != nil {
		t.Fatal(err)
	}
	id, err := r.store(t.Context(), store, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return Open(t.Context(), store, Ref{ID: id, Meta: r.Meta})
}

// TestHostile has snapshots that an enemy made: each ends in an error that names the object.
func TestHostile(t *testing.T) {
	const head = `{"dir":""}` + "\n"
	zero := strings.Repeat("0", 64)
	bomb, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	bombed := bomb.EncodeAll(make([]byte, 64<<20), nil)
	file := func(content string, size string) string {
		return head + `{"name":"f","type":1,"has":1,"mode":0,"uid":0,"gid":0,"size":` + size + `,"content":` + content + "}\n"
	}
	piece := func(n, z, at, pack string) string {
		return `{"pieces":[{"n":` + n + `,"z":` + z + `,"sum":"` + zero + `","at":` + at + `,"pack":` + pack + `}]}`
	}
	sumOf := func(b []byte) string { return object.SumOf(b).String() }
	for name, lines := range map[string]string{
		"nothing":              "\n",
		"no head":              `{"name":"f","type":7,"has":1}` + "\n",
		"another head":         `{"dir":"a"}` + "\n",
		"a slash":              head + `{"name":"a/b","type":7,"has":1}` + "\n",
		"dots":                 head + `{"name":"..","type":7,"has":1}` + "\n",
		"a dot":                head + `{"name":".","type":7,"has":1}` + "\n",
		"NUL":                  head + `{"name":"a\u0000","type":7,"has":1}` + "\n",
		"a target with NUL":    head + `{"name":"a","type":5,"has":1,"target":"b\u0000c"}` + "\n",
		"a name twice":         head + `{"name":"x","type":5,"has":1,"target":"y"}` + "\n" + `{"name":"x","type":1,"has":1,"content":{}}` + "\n",
		"no order":             head + `{"name":"b","type":7,"has":1}` + "\n" + `{"name":"a","type":7,"has":1}` + "\n",
		"no name":              head + `{"type":7,"has":1}` + "\n",
		"a long name":          head + `{"name":"` + strings.Repeat("a", 300) + `","type":7,"has":1}` + "\n",
		"a long line":          head + `{"name":"a","type":7,"has":1,"target":"` + strings.Repeat("a", maxLine) + `"}` + "\n",
		"a cut line":           head + `{"name":"a","type":7,"has":1` + "\n",
		"type 0":               head + `{"name":"a","type":0,"has":1}` + "\n",
		"type 8":               head + `{"name":"a","type":8,"has":1}` + "\n",
		"size 2^63":            file(`{}`, "9223372036854775808"),
		"size without content": file(`{}`, "5"),
		"a piece of 0":         file(piece("0", "0", "0", "0"), "0"),
		"a piece of -1":        file(piece("-1", "0", "0", "0"), "5"),
		"a piece of 2^62":      file(piece("4611686018427387904", "0", "0", "0"), "4611686018427387904"),
		"outside of its pack":  file(piece("5", "0", "33554432", "0"), "5"),
		"outside, wrapped":     file(piece("5", "0", "9223372036854775807", "0"), "5"),
		"no such pack":         file(piece("5", "0", "0", "7"), "5"),
		"no such object":       file(`{"pieces":[{"n":5,"sum":"`+zero+`"}]}`, "5"),
		"a hole outside":       file(`{"holes":[{"off":4,"len":9223372036854775807}]}`, "5"),
		"holes that overlap":   file(`{"holes":[{"off":0,"len":3},{"off":2,"len":3}]}`, "5"),
		"pieces and lists":     file(`{"pieces":[{"n":5,"sum":"`+zero+`"}],"lists":[{"n":5,"data":5,"sum":"`+zero+`"}]}`, "5"),
		"a bomb":               file(`{"pieces":[{"n":1000,"z":`+fmt.Sprint(min(999, len(bombed)))+`,"sum":"`+sumOf(bombed[:min(999, len(bombed))])+`","pack":1}]}`, "1000"),
		"a bomb of a part":     head + `{"name":"d","type":2,"has":1,"list":{"part":1,"len":11}}` + "\n",
		"a circle":             head + `{"name":"d","type":2,"has":1,"list":{"part":0,"len":70}}` + "\n",
		"a list outside":       head + `{"name":"d","type":2,"has":1,"list":{"part":0,"off":8388600,"len":8}}` + "\n",
		"a list of -1":         head + `{"name":"d","type":2,"has":1,"list":{"part":0,"len":-1}}` + "\n",
		"part 2^32-1":          head + `{"name":"d","type":2,"has":1,"list":{"part":4294967295,"len":1}}` + "\n",
		"an index of a pack":   head + `{"name":"d","type":2,"has":1,"list":{"part":0,"index":{"n":5,"sum":"` + zero + `","pack":0}}}` + "\n",
	} {
		s, err := forged(t, lines, bombed)
		if err == nil {
			err = each(t.Context(), s.FS(), func(string, vfs.Handle, *vfs.Attr, []byte) error { return nil })
		}
		var named *DamagedError
		if !errors.As(err, &named) || named.Key == "" || len(err.Error()) > 1000 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestHostileOrder: a listing that goes on behind a name compares the next one with that.
func TestHostileOrder(t *testing.T) {
	line := func(name string) string { return `{"name":"` + name + `","type":7,"has":1}` + "\n" }
	s, err := forged(t, `{"dir":""}`+"\n"+line("a")+line("b")+line("b"))
	if err != nil {
		t.Fatal(err)
	}
	root, _, err := s.FS().Root(t.Context())
	var from vfs.Pos
	names := ""
	for err == nil {
		var e *vfs.Entry
		for e, err = range s.FS().ReadDir(t.Context(), root, from, 0, 0) {
			break
		}
		if e == nil {
			break
		}
		from, names = e.Next, names+string(e.Name)
	}
	if !errors.Is(err, ErrDamaged) || names != "ab" {
		t.Errorf("%q, %v", names, err)
	}
}

// TestRootRefused wants roots that are damaged, of another kind, or of another version to be refused.
func TestRootRefused(t *testing.T) {
	store := object.NewMemory(object.MemoryOptions{})
	ref := take(t, mem(t), store, Meta{}).Ref()
	key := rootKey(ref.Name, ref.ID)
	good := contentOf(t, store, key)
	seal := func(line string) []byte { return []byte(line + "\n" + object.SumOf([]byte(line)).String() + "\n") }
	line, _, _ := bytes.Cut(good, []byte{'\n'})
	swap := func(from, to string) []byte { return seal(strings.Replace(string(line), from, to, 1)) }
	for name, b := range map[string][]byte{
		"empty": nil, "cut": good[:len(good)-1], "one bit": append([]byte{good[0] ^ 1}, good[1:]...), "more": append(slices.Clone(good), '\n'),
		"magic": swap(magic, "nfsbox snapshoe"), "version": swap(`"version":1`, `"version":2`), "name": swap(`"name":"test"`, `"name":"best"`),
		"objects": swap(`"objects":1`, `"objects":100000`), "many": swap(`"objects":1`, `"objects":9223372036854775807`),
		"less": swap(`"objects":1`, `"objects":-1`), "no root": swap(`"type":2`, `"type":1`), "long": seal(strings.Repeat(" ", maxRoot) + string(line)),
	} {
		if bytes.Equal(b, good) {
			t.Fatalf("%s changes nothing", name)
		}
		put(t, store, key, b)
		_, err := Open(t.Context(), store, ref)
		if !errors.Is(err, ErrDamaged) || (name == "version") != errors.Is(err, ErrVersion) {
			t.Errorf("%s: %v", name, err)
		}
	}
	put(t, store, key, good)
	if _, err := Open(t.Context(), store, ref); err != nil {
		t.Error(err)
	}
}

// FuzzLine wants a line to be refused, or to be an entry that is written as one that is the same.
func FuzzLine(f *testing.F) {
	tr := modest(f)
	store := object.NewMemory(object.MemoryOptions{})
	s := take(f, tr, store, Meta{})
	if err := each(f.Context(), s.FS(), func(_ string, h vfs.Handle, _ *vfs.Attr, _ []byte) error {
		e, err := s.Entry(f.Context(), h)
		if err != nil {
			return err
		}
		b, err := e.encode(nil)
		f.Add(bytes.TrimSuffix(b, []byte{'\n'}))
		return err
	}); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"name":{"b64":"/w=="},"type":5,"has":1,"target":{"b64":"/w=="}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeEntry(b, false)
		if err != nil {
			return
		}
		if vfs.CheckName(e.Name) != nil || e.Attr.Size > 1<<63-1 {
			t.Fatalf("%q of %d bytes", e.Name, e.Attr.Size)
		}
		again, err := e.encode(nil)
		if errors.Is(err, ErrTooLong) { // escapes may make it longer
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		o, err := decodeEntry(bytes.TrimSuffix(again, []byte{'\n'}), false)
		if err != nil {
			t.Fatalf("%s: %v", again, err)
		}
		third, err := o.encode(nil)
		if err != nil || !bytes.Equal(again, third) {
			t.Fatalf("%s\n%s: %v", again, third, err)
		}
		if name, err := lineName(again); err != nil || name != e.Name {
			t.Fatalf("%q, want %q: %v", name, e.Name, err)
		}
	})
}

// FuzzDecoders wants every decoder to refuse what it cannot be, without a panic.
func FuzzDecoders(f *testing.F) {
	for _, seed := range []string{
		"", "\n", `{"dir":""}` + "\n" + `{"first":"a","part":1}` + "\n" + `{"first":"b","part":2}` + "\n", `[{"off":0,"len":5}]`,
		`{"access":[[1,0,6]],"xattrs":[{"name":"user.a","value":"AA=="}]}`, `{"n":5,"sum":"` + strings.Repeat("0", 64) + `"}` + "\n",
		`{"name":"a"}` + "\n" + `{"name":"b"}` + "\n",
	} {
		f.Add([]byte(seed), "a")
	}
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		if _, spans, err := decodeIndex(b); err == nil {
			var list []chunk
			for _, s := range spans {
				list = append(list, chunk{span: s})
			}
			if i := findChunk(list, name); i >= len(list) || i >= 0 && list[i].first > name {
				t.Fatalf("%q is in part %d", name, i)
			}
		}
		if holes, err := decodeHoles(b, 0, 1<<40); err == nil && len(holes) == 0 {
			t.Fatal("a file without data and holes")
		}
		if x, err := decodeExtra(b); err == nil {
			if _, err := json.Marshal(x); err != nil {
				t.Fatal(err)
			}
		}
		if pieces, begins, err := decodeList(b, 5); err == nil && (len(pieces) == 0 || len(pieces) != len(begins)) {
			t.Fatal("a list without pieces")
		}
		if r, err := decodeRoot(b); err == nil && r.Objects > maxObjects {
			t.Fatalf("%d objects", r.Objects)
		}
		if off, err := findLine(b, name); err == nil && off >= 0 {
			row, err := lineAt(b, off)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := lineName(row); err != nil || got != name {
				t.Fatalf("%q, want %q: %v", got, name, err)
			}
		}
		if e, err := decodeEntry(b, true); err == nil && e.Attr.Type != vfs.TypeDir {
			t.Fatal("a root that is no directory")
		}
	})
}
