package export

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nfsbox/nfsbox/vfs"
)

// TestFirstRuleWins finds the rule of clients by address.
func TestFirstRuleWins(t *testing.T) {
	table := testTable(t, Key{}, Export{Path: "/", FS: memory(), Clients: []Rule{
		{Match: "10.0.0.1", ReadOnly: true},
		{Match: "10.0.0.0/8"},
		{Match: "2001:db8::/32", Secure: true},
		{Match: "::ffff:192.0.2.0/120"},
		{Match: "fe80::/10"},
	}})
	for _, x := range []struct {
		remote string
		want   error // of changing something
	}{
		{"10.0.0.1:700", vfs.ErrROFS},
		{"[::ffff:10.0.0.1]:700", vfs.ErrROFS},
		{"10.0.0.2:40000", nil},
		{"[::ffff:10.255.0.2]:40000", nil},
		{"11.0.0.1:700", vfs.ErrAccess},
		{"[2001:db8::7]:1023", nil},
		{"[2001:db8::7]:1024", vfs.ErrAccess},
		{"[2001:db8::7]:0", vfs.ErrAccess},
		{"[2001:db9::7]:700", vfs.ErrAccess},
		{"192.0.2.200:700", nil},
		{"[fe80::1%eth0]:700", nil},
		{"[::1]:700", vfs.ErrAccess},
		{"[::10.0.0.2]:700", vfs.ErrAccess}, // not the mapped form
	} {
		v := table.For(remote(x.remote), nil)
		root, _, err := v.Root(t.Context())
		if err == nil {
			_, err = v.SetAttr(t.Context(), root, &vfs.SetAttr{}, nil)
		}
		if !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", x.remote, err, x.want)
		}
	}
}

// named is a table whose rules are names, and its name service.
func named(t *testing.T, rules ...string) (*Table, *resolver, func() error) {
	t.Helper()
	r := &resolver{names: make(map[string][]string), addrs: make(map[string][]string)}
	e := Export{Path: "/", FS: memory()}
	for _, m := range rules {
		e.Clients = append(e.Clients, Rule{Match: m})
	}
	table, err := New(Options{Resolver: r, Report: func(error) {}}, e)
	if err != nil {
		t.Fatal(err)
	}
	v := table.For(remote("192.0.2.7:700"), nil)
	return table, r, func() error {
		_, _, err := v.Root(t.Context())
		return err
	}
}

// TestNames matches clients by their names, and ignores names that do not lead back to
// the address.
func TestNames(t *testing.T) {
	const addr = "192.0.2.7"
	for _, x := range []struct {
		what, rule string
		names      []string            // of the client's address
		addrs      map[string][]string // of names
		ok         bool
	}{
		{"a name with the address", "h.example.org", nil, map[string][]string{"h.example.org.": {"192.0.2.6", addr}}, true},
		{"a name with the address, mapped", "h.example.org", nil, map[string][]string{"h.example.org.": {"::ffff:" + addr}}, true},
		{"a name with another address", "h.example.org", []string{"h.example.org."}, map[string][]string{"h.example.org.": {"192.0.2.6"}}, false},
		{"a name that does not exist", "h.example.org", []string{"h.example.org."}, nil, false},
		{"a host in the domain", "*.example.org", []string{"H.Example.org."}, map[string][]string{"h.example.org.": {addr}}, true},
		{"a host far below the domain", "*.example.org", []string{"a.b.example.org"}, map[string][]string{"a.b.example.org.": {addr}}, true},
		{"the second of its names", "*.example.org", []string{"h.example.com.", "h.example.org."},
			map[string][]string{"h.example.org.": {addr}, "h.example.com.": {"192.0.2.1"}}, true},
		{"a name that lies", "*.example.org", []string{"h.example.org."}, map[string][]string{"h.example.org.": {"192.0.2.6"}}, false},
		{"a name that leads nowhere", "*.example.org", []string{"h.example.org."}, nil, false},
		{"the domain itself", "*.example.org", []string{"example.org."}, map[string][]string{"example.org.": {addr}}, false},
		{"another domain", "*.example.org", []string{"h.badexample.org."}, map[string][]string{"h.badexample.org.": {addr}}, false},
		{"a domain above", "*.example.org", []string{"example.org.evil.com."}, map[string][]string{"example.org.evil.com.": {addr}}, false},
		{"no name", "*.example.org", nil, nil, false},
		{"a name that is none", "*.example.org", []string{"a b.example.org.", "\x00.example.org.", "*.example.org.", ""},
			map[string][]string{"a b.example.org.": {addr}, "*.example.org.": {addr}}, false},
		{"a name beyond the bound", "*.example.org", append(strings.Split(strings.Repeat("x.example.com.,", maxNames), ",")[:maxNames], "h.example.org."),
			map[string][]string{"h.example.org.": {addr}, "x.example.com.": {addr}}, false},
	} {
		_, r, mount := named(t, x.rule)
		r.names[addr], r.addrs = x.names, x.addrs
		err := mount()
		if x.ok && err != nil || !x.ok && !errors.Is(err, vfs.ErrAccess) {
			t.Errorf("%s: %v", x.what, err)
		}
	}
}

// TestNamesAreRemembered renews an answer that is old, and uses the old one until the
// new one is there, or while the service fails.
func TestNamesAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r, mount := named(t, "*.example.org")
		r.names["192.0.2.7"] = []string{"h.example.org."}
		r.addrs["h.example.org."] = []string{"192.0.2.7"}
		want := func(what string, asked int, err error) {
			t.Helper()
			if got := mount(); !errors.Is(got, err) {
				t.Errorf("%s: %v, want %v", what, got, err)
			}
			synctest.Wait()
			r.set(func(r *resolver) {
				if n := r.asked["192.0.2.7"]; n != asked {
					t.Errorf("%s: asked %d times, want %d", what, n, asked)
				}
			})
		}
		for range 100 {
			want("at first", 1, nil)
		}
		time.Sleep(freshFor - time.Second)
		want("while it is fresh", 1, nil)
		r.set(func(r *resolver) { r.err = errBroken })
		time.Sleep(2 * time.Second)
		want("old, and the service fails", 2, nil)
		time.Sleep(retryAfter + time.Second)
		want("old, and the service still fails", 3, nil)
		r.set(func(r *resolver) { r.err = nil; r.names = nil })
		time.Sleep(2 * retryAfter)
		// The look-up is held until the mount has its answer: it may be faster otherwise.
		gone := make(chan struct{})
		r.set(func(r *resolver) { r.block = gone })
		if err := mount(); err != nil {
			t.Errorf("the first to ask after the name is gone: %v", err)
		}
		close(gone)
		synctest.Wait()
		r.set(func(r *resolver) { r.block = nil })
		time.Sleep(retryAfter)
		want("the name is gone", 4, vfs.ErrAccess)
		time.Sleep(missingFor - 2*retryAfter)
		want("nothing is remembered, too", 4, vfs.ErrAccess)
		r.set(func(r *resolver) { r.names = map[string][]string{"192.0.2.7": {"h.example.org."}} })
		time.Sleep(2 * retryAfter)
		want("it is back", 5, nil)
		r.set(func(r *resolver) { r.err = errBroken })
		for range keepFor / (10 * time.Minute) {
			time.Sleep(10 * time.Minute)
			if err := mount(); err != nil {
				t.Fatalf("forgotten before %v: %v", keepFor, err)
			}
		}
		time.Sleep(2 * freshFor)
		_ = mount() // the answer that is too old is noticed by the next look-up
		time.Sleep(retryAfter)
		if err := mount(); !errors.Is(err, vfs.ErrBusy) {
			t.Errorf("believed after more than %v without the service: %v", keepFor, err)
		}
	})
}

// TestOldNames: an answer that nobody has used for long does not let the client in once more.
func TestOldNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r, mount := named(t, "*.example.org")
		r.names["192.0.2.7"] = []string{"h.example.org."}
		r.addrs["h.example.org."] = []string{"192.0.2.7"}
		if err := mount(); err != nil {
			t.Fatal(err)
		}
		r.set(func(r *resolver) { r.names = nil })
		time.Sleep(keepFor + time.Second)
		if err := mount(); !errors.Is(err, vfs.ErrAccess) {
			t.Errorf("by a name from before %v: %v", keepFor, err)
		}
	})
}

// TestSlowNamesAndGroups: a call waits for both together no longer than for one of them.
func TestSlowNamesAndGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		block := make(chan struct{})
		r := &resolver{block: make(chan struct{}), names: map[string][]string{"192.0.2.7": {"h.example.org."}},
			addrs: map[string][]string{"h.example.org.": {"192.0.2.7"}}}
		table, err := New(Options{Resolver: r, Report: func(error) {}, Groups: func(context.Context, uint32) ([]uint32, error) {
			<-block
			return []uint32{1}, nil
		}}, Export{Path: "/", FS: memory(), Clients: []Rule{{Match: "*.example.org", ManyGroups: true}}})
		if err != nil {
			t.Fatal(err)
		}
		v := table.For(remote("192.0.2.7:700"), &vfs.Caller{UID: 1000})
		time.AfterFunc(lookupWait/2, func() { close(r.block) })
		began := time.Now()
		if _, _, err := v.Root(t.Context()); !errors.Is(err, vfs.ErrBusy) || time.Since(began) != lookupWait {
			t.Errorf("%v after %v, want %v after %v", err, time.Since(began), vfs.ErrBusy, lookupWait)
		}
		close(block)
		synctest.Wait()
		time.Sleep(retryAfter)
		if _, _, err := v.Root(t.Context()); err != nil {
			t.Errorf("when all is known: %v", err)
		}
	})
}

// TestSlowNames keeps no call waiting for long, whatever the number of rules.
func TestSlowNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := []string{"10.0.0.0/8", "*.example.org"}
		for i := range 100 {
			rules = append(rules, fmt.Sprintf("h%d.example.com", i))
		}
		table, r, mount := named(t, rules...)
		r.block = make(chan struct{})
		began := time.Now()
		if err := mount(); !errors.Is(err, vfs.ErrBusy) {
			t.Errorf("a name that is not known: %v", err)
		}
		if took := time.Since(began); took > lookupWait {
			t.Errorf("the call took %v, want at most %v", took, lookupWait)
		}
		began = time.Now()
		if _, _, err := table.For(remote("10.0.0.1:700"), nil).Root(t.Context()); err != nil || time.Since(began) != 0 {
			t.Errorf("an address that is matched first waits for names: %v, %v", err, time.Since(began))
		}
		r.set(func(r *resolver) {
			if r.most > 2*maxLookups {
				t.Errorf("%d look-ups at once, want at most %d of each kind", r.most, maxLookups)
			}
		})
		// The answer comes late, and is there for the next call.
		r.set(func(r *resolver) { r.addrs["h7.example.com."] = []string{"192.0.2.7"} })
		close(r.block)
		time.Sleep(retryAfter)
		if err := mount(); err != nil {
			t.Errorf("the late answer is not used: %v", err)
		}
	})
}

// TestAnswersAreBounded has more clients than answers are kept, with a quick name
// service and with one that never answers.
func TestAnswersAreBounded(t *testing.T) {
	for _, slow := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			table, r, _ := named(t, "*.example.org")
			if slow {
				r.block = make(chan struct{})
			}
			done := make(chan error, maxAnswers+100)
			// More that wait at once than answers are kept are put off, however quick they are.
			most := maxLookups
			if slow {
				most = cap(done)
			}
			atOnce := make(chan struct{}, most)
			for i := range maxAnswers + 100 {
				go func() {
					atOnce <- struct{}{}
					defer func() { <-atOnce }()
					_, _, err := table.For(remote(fmt.Sprintf("10.1.%d.%d:700", i/256, i%256)), nil).Root(t.Context())
					done <- err
				}()
			}
			for range cap(done) {
				if err := <-done; !errors.Is(err, vfs.ErrAccess) && !(slow && errors.Is(err, vfs.ErrBusy)) {
					t.Fatal(err)
				}
			}
			table.clients.names.mu.Lock()
			if n := len(table.clients.names.answers); n > maxAnswers {
				t.Errorf("%d answers are kept", n)
			}
			table.clients.names.mu.Unlock()
			time.Sleep(2 * lookupTime) // the last look-up has ended by then
		})
	}
}

// TestStrangersByName floods the cache with strangers for whose addresses the name
// service never answers. A client that a rule has let in by its name stays in and is
// renewed; the strangers get ErrBusy.
func TestStrangersByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table, r, mount := named(t, "*.example.org")
		r.names["192.0.2.7"] = []string{"h.example.org."}
		r.addrs["h.example.org."] = []string{"192.0.2.7"}
		if err := mount(); err != nil {
			t.Fatal(err)
		}
		block := make(chan struct{})
		r.set(func(r *resolver) {
			r.blocks = func(what string) bool { return strings.HasPrefix(what, "10.") }
			r.block = block
		})
		end, n := time.Now().Add(2*keepFor), 0
		for many := maxAnswers + 100; time.Now().Before(end); many = 100 {
			done := make(chan error, many)
			for range many {
				n++
				go func(n int) {
					_, _, err := table.For(remote(fmt.Sprintf("10.%d.%d.%d:700", n>>16&0xff, n>>8&0xff, n&0xff)), nil).Root(t.Context())
					done <- err
				}(n)
			}
			for range cap(done) {
				if err := <-done; !errors.Is(err, vfs.ErrBusy) {
					t.Fatalf("a stranger: %v", err)
				}
			}
			// A view of its own, as a new connection has it.
			if _, _, err := table.For(remote("192.0.2.7:701"), nil).Root(t.Context()); err != nil {
				t.Fatalf("the client, after %d strangers: %v", n, err)
			}
			time.Sleep(freshFor / 2)
		}
		r.set(func(r *resolver) {
			if n := r.asked["192.0.2.7"]; n < int(2*keepFor/freshFor)-2 {
				t.Errorf("the client's name was renewed %d times in %v", n, 2*keepFor)
			}
		})
		close(block)
		time.Sleep(2 * lookupTime)
	})
}

// TestUnknownNames is ErrBusy for a client while it is not known whether a rule matches,
// unless that makes no difference.
func TestUnknownNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &resolver{err: errBroken}
		for _, x := range []struct {
			what  string
			rules []Rule
			want  error
		}{
			{"no other rule", []Rule{{Match: "*.example.org"}}, vfs.ErrBusy},
			{"another rule that gives less", []Rule{{Match: "*.example.org"}, {Match: "*", ReadOnly: true}}, vfs.ErrBusy},
			{"another rule that gives the same", []Rule{{Match: "*.example.org"}, {Match: "h.example.com"}, {Match: "192.0.2.0/24"}}, nil},
			{"one of two gives something else", []Rule{{Match: "*.example.org"}, {Match: "h.example.com", ReadOnly: true}, {Match: "*"}}, vfs.ErrBusy},
			{"a rule before", []Rule{{Match: "192.0.2.0/24"}, {Match: "*.example.org", ReadOnly: true}}, nil},
		} {
			table, err := New(Options{Resolver: r}, Export{Path: "/", FS: memory(), Clients: x.rules})
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := table.For(remote("192.0.2.7:700"), nil).Root(t.Context()); !errors.Is(err, x.want) {
				t.Errorf("%s: %v, want %v", x.what, err, x.want)
			}
		}
		// An empty answer is good for a short time only.
		table, err := New(Options{Resolver: r}, Export{Path: "/", FS: memory(), Clients: []Rule{{Match: "*.example.org"}}})
		if err != nil {
			t.Fatal(err)
		}
		mount := func() error {
			_, _, err := table.For(remote("192.0.2.7:700"), nil).Root(t.Context())
			return err
		}
		r.set(func(r *resolver) { r.err = nil })
		if err := mount(); !errors.Is(err, vfs.ErrAccess) {
			t.Errorf("no name: %v", err)
		}
		r.set(func(r *resolver) { r.err = errBroken })
		time.Sleep(missingFor + time.Second)
		if err := mount(); !errors.Is(err, vfs.ErrBusy) {
			t.Errorf("no name a while ago, and the service fails: %v", err)
		}
	})
}
