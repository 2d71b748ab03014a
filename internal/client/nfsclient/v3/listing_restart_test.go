package v3_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/nfsbox/nfsbox/internal/client/nfsclient/v3"
	"github.com/nfsbox/nfsbox/oncrpc"
	"github.com/nfsbox/nfsbox/proto/nfs3"
	"github.com/nfsbox/nfsbox/vfs"
	"github.com/nfsbox/nfsbox/xdr"
)

// shelf is a directory at a server that refuses cookies under any verifier but
// its present one. Its cookies are places, as servers have them that keep an
// array, or belong to the names and ascend, as those of hashes do.
type shelf struct {
	places  bool
	names   []string
	cookies map[string]uint64
	verf    nfs3.Cookieverf3
	perPage int
	good    uint64 // cookies above are refused
	// before is called before each answer; n counts the calls.
	before func(n int, s *shelf)

	mu    sync.Mutex
	calls int
}

func newShelf(n int) *shelf {
	s := &shelf{cookies: make(map[string]uint64), perPage: 10, good: 1 << 63, verf: nfs3.Cookieverf3{1}}
	for i := range n {
		s.names = append(s.names, fmt.Sprintf("n%04d", i))
		s.cookies[s.names[i]] = uint64(i)*1000 + 1000
	}
	return s
}

// refuse forgets all cookies.
func (s *shelf) refuse() { s.verf[7]++ }

// remove takes names away.
func (s *shelf) remove(names ...string) {
	s.names = slices.DeleteFunc(s.names, func(n string) bool { return slices.Contains(names, n) })
}

// insert puts a name before that of place i.
func (s *shelf) insert(i int, name string) {
	s.cookies[name] = s.cookies[s.names[i]] - 1
	s.names = slices.Insert(s.names, i, name)
}

// shuffle puts all into another order.
func (s *shelf) shuffle() {
	rand.New(rand.NewPCG(7, uint64(s.calls))).Shuffle(len(s.names), func(i, j int) {
		s.names[i], s.names[j] = s.names[j], s.names[i]
	})
	for i, name := range s.names {
		s.cookies[name] = uint64(i)*1000 + 1000
	}
}

func (s *shelf) cookie(i int) uint64 {
	if s.places {
		return uint64(i) + 1
	}
	return s.cookies[s.names[i]]
}

func (s *shelf) answer(_ int, c *oncrpc.Call) xdr.Appender {
	s.mu.Lock()
	defer s.mu.Unlock()
	var args nfs3.READDIR3args
	if args.DecodeXDR(&c.Args) != nil {
		return nil
	}
	if s.calls++; s.before != nil {
		s.before(s.calls, s)
	}
	if args.Cookie != 0 && args.Cookieverf != s.verf || args.Cookie > s.good {
		return &nfs3.READDIR3res{Status: nfs3.NFS3ERR_BAD_COOKIE}
	}
	res := &nfs3.READDIR3res{}
	res.Resok.Cookieverf = s.verf
	for i, name := range s.names {
		if s.cookie(i) <= args.Cookie {
			continue
		}
		if len(res.Resok.Reply.Entries) == s.perPage {
			return res
		}
		res.Resok.Reply.Entries = append(res.Resok.Reply.Entries, nfs3.Entry3{Fileid: 1, Name: []byte(name), Cookie: s.cookie(i)})
	}
	res.Resok.Reply.Eof = true
	return res
}

// at makes f happen before the n'th call.
func at(n int, f func(s *shelf)) func(int, *shelf) {
	return func(i int, s *shelf) {
		if i == n {
			f(s)
		}
	}
}

// TestRefusedCookie: whatever a server does to its cookies, what is there
// throughout is delivered once.
func TestRefusedCookie(t *testing.T) {
	const files = 200
	for _, tc := range []struct {
		name   string
		places bool
		before func(int, *shelf)
		calls  int // at most; 0: any number
	}{
		{"the verifier changes", false, at(5, (*shelf).refuse), 21 + 3},
		{"the verifier changes often", false, func(n int, s *shelf) {
			if n%3 == 0 {
				s.refuse()
			}
		}, 0},
		{"the last entry is gone", false, at(5, func(s *shelf) { s.remove("n0039"); s.refuse() }), 0},
		{"all that was listed is gone", false, at(5, func(s *shelf) { s.remove(s.names[:40]...); s.refuse() }), 0},
		{"places move up", true, at(7, func(s *shelf) { s.remove("n0003"); s.refuse() }), 0},
		{"places move down", true, at(7, func(s *shelf) { s.insert(0, "new"); s.refuse() }), 0},
		{"places stay", true, at(7, func(s *shelf) { s.remove("n0003"); s.insert(0, "new"); s.refuse() }), 21 + 3},
		{"another order", true, at(7, func(s *shelf) { s.shuffle(); s.refuse() }), 0},
		{"another order, of hashes", false, at(12, func(s *shelf) { s.shuffle(); s.refuse() }), 0},
		{"another order, and another", false, func(n int, s *shelf) {
			if n == 9 || n == 25 {
				s.shuffle()
				s.refuse()
			}
		}, 0},
		{"pages of one entry", false, func(n int, s *shelf) {
			if s.perPage = 1; n%4 == 0 {
				s.refuse()
			}
		}, 0},
		{"only the first page is long", false, func(n int, s *shelf) { // so that each restart gets further, a little
			s.perPage = 2 + n
			s.refuse()
		}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newShelf(files)
			s.places, s.before = tc.places, tc.before
			all := slices.Clone(s.names)
			st := play(t, script{nfs3.NFSPROC3_READDIR: s.answer}, v3.Options{})
			names, _, err := st.list(t, vfs.Pos{}, 0, 0)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range slices.DeleteFunc(all, func(n string) bool { return !slices.Contains(s.names, n) }) {
				if !slices.Contains(names, name) {
					t.Errorf("%s is missing", name)
				}
			}
			slices.Sort(names)
			if n := len(names); len(slices.Compact(names)) != n {
				t.Error("an entry came twice")
			}
			if tc.calls != 0 && s.calls > tc.calls {
				t.Errorf("%d calls, want %d at most", s.calls, tc.calls)
			}
		})
	}
}

// TestRefusedForEver ends, and what could be had was delivered.
func TestRefusedForEver(t *testing.T) {
	for _, tc := range []struct {
		name  string
		good  uint64
		names int
	}{{"every cookie", 0, 10}, {"cookies behind some pages", 55_000, 60}} {
		t.Run(tc.name, func(t *testing.T) {
			s := newShelf(500)
			s.good = tc.good
			st := play(t, script{nfs3.NFSPROC3_READDIR: s.answer}, v3.Options{})
			names, _, err := st.list(t, vfs.Pos{}, 0, 0)
			if !errors.Is(err, vfs.ErrBadCookie) || !slices.Equal(names, s.names[:tc.names]) {
				t.Errorf("%d names, %v", len(names), err)
			}
			if s.calls > 150 {
				t.Errorf("%d calls", s.calls)
			}
		})
	}
}

// TestRefusedToken: what came before a token is the caller's to know.
func TestRefusedToken(t *testing.T) {
	const files = 200
	for _, tc := range []struct {
		name   string
		before func(int, *shelf)
		from   int // the place of the token
		names  int // that come
		ok     bool
	}{
		{"at once", func(_ int, s *shelf) { s.verf = nfs3.Cookieverf3{9} }, 50, 0, false},
		{"too early to tell", at(2, func(s *shelf) { s.remove("n0059"); s.refuse() }), 50, 10, false},
		{"the verifier alone", at(2, (*shelf).refuse), 50, 150, true},
		{"late", at(6, func(s *shelf) { s.remove("n0099"); s.refuse() }), 50, 150, true},
		{"late, in another order", at(6, func(s *shelf) { s.shuffle(); s.refuse() }), 50, 50, false},
		{"late, and all of it gone", at(6, func(s *shelf) { s.remove(s.names[50:100]...); s.refuse() }), 50, 50, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newShelf(files)
			from := vfs.Pos{Cookie: s.cookie(tc.from - 1), Verf: vfs.Verifier(s.verf)}
			all := slices.Clone(s.names[tc.from:])
			s.before = tc.before
			st := play(t, script{nfs3.NFSPROC3_READDIR: s.answer}, v3.Options{})
			names, _, err := st.list(t, from, 0, 0)
			if tc.ok && err != nil || !tc.ok && !errors.Is(err, vfs.ErrBadCookie) {
				t.Errorf("%v", err)
			}
			if !slices.Equal(names, all[:tc.names]) {
				t.Errorf("%d names, want %d: %.100q", len(names), tc.names, names)
			}
		})
	}
}
