package objecttest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/nfsbox/nfsbox/internal/server/object"
)

var listTests = []test{
	{"list/order", func(e *env) {
		e.wantList("", "", 0, nil)
		keys := e.putListed()
		e.wantList("", "", 0, keys)
		var all []string
		for info, err := range object.All(e.ctx(), e.s, "") {
			e.ok(err)
			all = append(all, info.Key)
			if info.Size != int64(len(info.Key)) {
				e.Errorf("%s has %d bytes", info.Key, info.Size)
			}
		}
		if !slices.Equal(all, keys) {
			e.Errorf("All gives %q, want %q", all, keys)
		}
	}},
	{"list/prefixes", func(e *env) {
		keys := e.putListed()
		tried := make(map[string]bool)
		for _, key := range listed {
			for n := range len(key) + 1 {
				for _, prefix := range []string{key[:n], key[:n] + "0", key[:n] + "/"} {
					if !tried[prefix] && object.CheckPrefix(prefix) == nil {
						tried[prefix] = true
						e.wantList(prefix, "", 0, keys)
					}
				}
			}
		}
	}},
	{"list/pages", func(e *env) {
		keys := e.putListed()
		for _, prefix := range []string{"", "a", "a/", "aa", "b"} {
			for limit := range 6 {
				e.wantList(prefix, "", limit+1, keys)
			}
		}
		for _, after := range slices.Concat(keys, []string{"a/", "a/a", "aa/aa/", "ab/0/0/0", "b/b/b/b/b/b", "zzz"}) {
			for _, prefix := range []string{"", "a", "a/b", "aa/"} {
				for _, limit := range []int{0, 1, 3} {
					e.wantList(prefix, after, limit, keys)
				}
			}
		}
		page, err := e.s.List(e.ctx(), "", "", len(keys))
		e.ok(err)
		if len(page.Objects) != len(keys) {
			e.Errorf("a page for %d has %d", len(keys), len(page.Objects))
		}
		if page, err = e.s.List(e.ctx(), "", "", len(keys)-1); err != nil || !page.More {
			e.Errorf("a page that lacks one is the last: %v, %v", page.More, err)
		}
	}},
	{"list/many", func(e *env) {
		var keys []string
		for i := range object.PageSize + 300 {
			key := fmt.Sprintf("many/%03x", i*7919%4096)
			if i%13 == 0 {
				key = fmt.Sprintf("d%03d/x", i)
			}
			keys = append(keys, key)
		}
		e.putAll(keys)
		slices.Sort(keys)
		e.wantList("", "", 0, keys)
		e.wantList("", "", 1<<30, keys)
		e.wantList("", "", 499, keys)
		e.wantList("many/", "", 100, keys)
		e.wantList("d", "d5", 100, keys)
	}},
	{"list/hostile", func(e *env) {
		e.put("a", nil)
		for _, bad := range []string{"/", "..", "../", "a//", "A", "a\x00", ".", strings.Repeat("a", object.MaxSegment+1), "a/../b"} {
			_, err := e.s.List(e.ctx(), bad, "", 0)
			e.wantErr(err, object.ErrKey)
			_, err = e.s.List(e.ctx(), "", bad, 0)
			e.wantErr(err, object.ErrKey)
		}
		if got := e.list("", "", -5); len(got) != 1 {
			e.Errorf("with a negative limit: %q", got)
		}
	}},
}

// listed are keys of which some are the beginnings of others, in an order in which
// a slash is neither the least nor the greatest character.
var listed = []string{
	"0", "a", "a-", "a-/x", "a-b", "a.b/c", "a/0", "a/b", "a/b/c", "a/b0", "a0", "a_/b", "aa", "aa/a", "aa/aa", "aa/aa/aa",
	"aaa", "aaa/a", "aab", "ab-", "ab", "ab/", "ab/=", "b/a", "b/b/b/b/b", "z", "zz/z",
}

func (e *env) putListed() []string {
	e.Helper()
	var keys []string
	for _, key := range listed {
		if object.CheckKey(key) == nil {
			e.put(key, []byte(key))
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (e *env) putAll(keys []string) {
	e.Helper()
	var wg sync.WaitGroup
	for part := range slices.Chunk(keys, len(keys)/putters) {
		wg.Go(func() {
			for _, key := range part {
				if _, err := e.s.Put(e.ctx(), key, strings.NewReader(""), anything); err != nil {
					e.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// list goes through all pages and checks their form.
func (e *env) list(prefix, after string, limit int) (keys []string) {
	e.Helper()
	for pages := 0; ; pages++ {
		if pages > 10_000 {
			e.Fatal("the listing does not end")
		}
		page, err := e.s.List(e.ctx(), prefix, after, limit)
		e.ok(err)
		if limit > 0 && len(page.Objects) > limit || len(page.Objects) > object.PageSize {
			e.Fatalf("a page of %d has %d objects", limit, len(page.Objects))
		}
		for _, o := range page.Objects {
			if o.Key <= after || !strings.HasPrefix(o.Key, prefix) {
				e.Fatalf("%q is listed behind %q, with prefix %q", o.Key, after, prefix)
			}
			if !o.Sum.IsZero() || o.ModTime.IsZero() {
				e.Fatalf("a listed object is %+v", o)
			}
			after = o.Key
			keys = append(keys, o.Key)
		}
		if !page.More || len(page.Objects) == 0 {
			return keys
		}
	}
}

func (e *env) wantList(prefix, after string, limit int, all []string) {
	e.Helper()
	var want []string
	for _, key := range all {
		if strings.HasPrefix(key, prefix) && key > after {
			want = append(want, key)
		}
	}
	if got := e.list(prefix, after, limit); !slices.Equal(got, want) {
		e.Fatalf("prefix %q, after %q, limit %d: %q, want %q", prefix, after, limit, got, want)
	}
}
