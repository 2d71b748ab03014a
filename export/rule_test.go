package export

import (
	"net/netip"
	"strings"
	"testing"
)

func TestParseRules(t *testing.T) {
	for _, x := range []struct {
		match string
		want  string // the network, the name or the domain
	}{
		{"*", "*"},
		{"192.0.2.7", "192.0.2.7/32"},
		{"2001:DB8::1", "2001:db8::1/128"},
		{"::ffff:192.0.2.7", "192.0.2.7/32"},
		{"10.0.0.0/8", "10.0.0.0/8"},
		{"10.9.8.7/8", "10.0.0.0/8"},
		{"0.0.0.0/0", "0.0.0.0/0"},
		{"2001:db8:ffff::/32", "2001:db8::/32"},
		{"::ffff:10.0.0.0/104", "10.0.0.0/8"},
		{"::/0", "::/0"},
		{"Host.Example.ORG", "host.example.org"},
		{"host.example.org.", "host.example.org"},
		{"nas_1", "nas_1"},
		{"10gbit.example.org", "10gbit.example.org"},
		{"*.Example.org", ".example.org"},
		{"*.org", ".org"},
	} {
		r, err := parseRule(Rule{Match: x.match})
		if err != nil {
			t.Errorf("%q: %v", x.match, err)
			continue
		}
		got := r.host + r.domain
		if r.prefix.IsValid() {
			got += r.prefix.String()
		}
		if r.all {
			got += "*"
		}
		if got != x.want {
			t.Errorf("%q is understood as %q, want %q", x.match, got, x.want)
		}
	}
}

// hostileRules are what a configuration may say and must not.
var hostileRules = []string{
	"", " ", "**", "*.", "*..org", "*example.org", "a*.example.org", "*.*.org", "?.example.org", "[ab].example.org",
	"10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "/8", "10.0.0.0/255.0.0.0", "10.0.0/8", "2001:db8::/129", "::ffff:10.0.0.0/95",
	"10.0.0.256", "10.0.0", "1", "010.0.0.1", "0x7f.1", "10.0.0.1:2049", "[::1]", "fe80::1%eth0", "fe80::%eth0/64", ":", "::g",
	"@netgroup", "host example", "host\x00", "host\n", "-host", "host-", "a..b", ".", "..", ".example.org", "host/24", "h\xffst", "höst",
	strings.Repeat("a", 64), strings.Repeat("a.", 127) + "a", strings.Repeat("x", 1<<20), "localhost,10.0.0.1", "host(rw)",
}

func TestHostileRules(t *testing.T) {
	for _, m := range hostileRules {
		_, err := NewTable(Key{}, Export{Path: "/home", FS: memory(), Clients: []Rule{{Match: "192.0.2.1"}, {Match: m}}})
		if err == nil {
			t.Errorf("%.40q was accepted", m)
			continue
		}
		if text := err.Error(); !strings.Contains(text, `"/home": client 2, `) || len(text) > 500 {
			t.Errorf("%.40q: the error does not name the rule, or is long: %.600s", m, text)
		}
	}
	if _, err := NewTable(Key{}, Export{Path: "/", FS: memory(), Clients: []Rule{{Match: "*", Squash: 3}}}); err == nil {
		t.Error("an unknown squash was accepted")
	}
	nobody := uint32(Anonymous)
	for _, r := range []Rule{{Match: "*", AnonUID: &nobody}, {Match: "*", AnonGID: &nobody}} {
		if _, err := parseRules([]Rule{r}); err == nil {
			t.Errorf("%+v: an id that is none was accepted", r)
		}
	}
	many := make([]Rule, MaxRules+1)
	if _, err := NewTable(Key{}, Export{Path: "/", FS: memory(), Clients: many}); err == nil || !strings.Contains(err.Error(), "more than 4096 rules") {
		t.Errorf("too many rules: %v", err)
	}
}

// TestRulesNeverReached refuses what its writer cannot have meant.
func TestRulesNeverReached(t *testing.T) {
	for _, x := range []struct {
		first, second string
		ok            bool
	}{
		{"*", "10.0.0.1", false},
		{"*", "*", false},
		{"*", "h.example.org", false},
		{"10.0.0.0/8", "10.1.0.0/16", false},
		{"10.0.0.0/8", "10.0.0.1", false},
		{"10.1.0.0/16", "10.0.0.0/8", true},
		{"10.0.0.1", "10.0.0.2", true},
		{"0.0.0.0/0", "::/0", true},
		{"0.0.0.0/0", "*", true},
		{"h.example.org", "H.example.org", false},
		{"*.example.org", "*.example.org", false},
		{"*.example.org", "h.example.org", true}, // found in another way
		{"h.example.org", "10.0.0.1", true},
		{"h.example.org", "*", true},
		{"10.0.0.1", "h.example.org", true},
	} {
		_, err := parseRules([]Rule{{Match: x.first}, {Match: x.second}})
		if (err == nil) != x.ok {
			t.Errorf("%q before %q: %v", x.first, x.second, err)
		}
	}
}

func TestSquashWords(t *testing.T) {
	for _, s := range []Squash{SquashNone, SquashRoot, SquashAll} {
		if got, err := ParseSquash(s.String()); err != nil || got != s {
			t.Errorf("%v: %v, %v", s, got, err)
		}
	}
	for _, w := range []string{"", "Root", "squash 3", Squash(3).String()} {
		if _, err := ParseSquash(w); err == nil {
			t.Errorf("%q is a squash", w)
		}
	}
}

// FuzzRule parses anything, and what is accepted once is accepted again.
func FuzzRule(f *testing.F) {
	for _, m := range hostileRules {
		f.Add(m[:min(len(m), 300)])
	}
	f.Add("2001:db8::/32")
	f.Add("*.example.org")
	f.Fuzz(func(t *testing.T, m string) {
		r, err := parseRule(Rule{Match: m})
		if err != nil {
			return
		}
		kinds := 0
		for _, is := range []bool{r.all, r.prefix.IsValid(), r.host != "", r.domain != ""} {
			if is {
				kinds++
			}
		}
		if kinds != 1 {
			t.Errorf("%q is %d kinds of rule", m, kinds)
		}
		if r.prefix.IsValid() && !r.prefix.Contains(netip.PrefixFrom(r.prefix.Addr(), r.prefix.Bits()).Addr()) {
			t.Errorf("%q does not contain itself", m)
		}
	})
}
