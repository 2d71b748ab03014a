package export

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// MaxRules bounds the rules of all exports of a table together; see MaxExports.
const MaxRules = 4096

// Nobody is the user and group of callers that are squashed, or that do not say who
// they are, if the rule names no other: 65534, as on Linux.
const Nobody = 65534

// Rule says which clients may use an export, and how.
type Rule struct {
	// Match says which clients:
	//
	//	"*"                           every client
	//	"192.0.2.7", "2001:db8::1"    the client with this address
	//	"10.0.0.0/8", "2001:db8::/32" those in this network
	//	"host.example.org"            the client with an address of this name
	//	"*.example.org"               those whose address has a name in this domain, or
	//	                              below it, that in turn has the address
	//
	// IPv4 addresses that came mapped into IPv6 are IPv4. A client whose
	// connection has no IP address is matched by "*" alone. Addresses are sure
	// and need no look-up; names are as good as the name service. While it has not
	// answered whether a rule matches, calls are vfs.ErrBusy, unless a later rule
	// matches that gives the same rights. If the service fails, its last answer
	// serves for an hour.
	Match string
	// ReadOnly refuses every change with vfs.ErrROFS.
	ReadOnly bool
	// Squash says which callers become anonymous.
	Squash Squash
	// AnonUID and AnonGID are the anonymous user and group. nil: Nobody.
	// [Anonymous] is an error.
	AnonUID, AnonGID *uint32
	// NoHostFiles hands no file to another process of this host: see Export.NoHostFiles.
	NoHostFiles bool
	// Secure refuses calls from source ports of 1024 and above, which any user of
	// the client can get, and from unknown ports.
	Secure bool
	// ManyGroups takes the caller's further groups from this host instead of the
	// credential, which has room for 16. The primary group is still the
	// credential's, as with nfsd. A user who does not exist on this host has no
	// further groups. While the look-up fails, or takes longer than two seconds,
	// calls are vfs.ErrBusy.
	ManyGroups bool
	// TrustLocal believes the credential of programs on this host, although the
	// kernel knows which user they run as: see [Origin].
	TrustLocal bool
}

// Squash says which callers become anonymous. A caller that does not say who it is
// ([Anonymous]) always does.
type Squash uint8

// The kinds of squashing.
const (
	// SquashNone believes every caller.
	SquashNone Squash = iota
	// SquashRoot maps uid 0, and gid 0 wherever it stands among the caller's
	// groups. The other groups stay, as with nfsd.
	SquashRoot
	// SquashAll makes every caller the anonymous user, in the anonymous group alone.
	SquashAll
)

var squashNames = [...]string{"none", "root", "all"}

// String returns the word that ParseSquash understands.
func (s Squash) String() string {
	if int(s) < len(squashNames) {
		return squashNames[s]
	}
	return fmt.Sprintf("squash %d", uint8(s))
}

// ParseSquash returns the Squash of a word: "none", "root" or "all".
func ParseSquash(s string) (Squash, error) {
	for i, name := range squashNames {
		if s == name {
			return Squash(i), nil
		}
	}
	return 0, fmt.Errorf("squash %.40q: not one of none, root and all", s)
}

// rule is a Rule with its Match parsed. Exactly one of all, prefix, host and domain is
// set.
type rule struct {
	Rule
	all    bool
	prefix netip.Prefix
	host   string // lower case
	domain string // lower case, with the leading dot
}

// parseRules parses the rules of one export. Its errors name the rule.
func parseRules(rules []Rule) ([]rule, error) {
	out := make([]rule, 0, len(rules))
	for i, r := range rules {
		p, err := parseRule(r)
		if err != nil {
			return nil, fmt.Errorf("client %d, %.100q: %w", i+1, r.Match, err)
		}
		for j := range out {
			if out[j].covers(&p) {
				return nil, fmt.Errorf("client %d, %q: never reached, for client %d, %q, matches first", i+1, r.Match, j+1, out[j].Match)
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// covers reports whether r surely matches every client that p matches. Of names, that
// is known only if they are the same.
func (r *rule) covers(p *rule) bool {
	switch {
	case r.all:
		return true
	case r.prefix.IsValid():
		return p.prefix.IsValid() && r.prefix.Bits() <= p.prefix.Bits() && r.prefix.Contains(p.prefix.Addr())
	}
	return !p.all && r.host == p.host && r.domain == p.domain && !p.prefix.IsValid()
}

// CheckMatch says what is wrong with a [Rule].Match, or nil.
func CheckMatch(match string) error {
	_, err := parseRule(Rule{Match: match})
	return err
}

func parseRule(r Rule) (rule, error) {
	p := rule{Rule: r}
	if int(r.Squash) >= len(squashNames) {
		return p, errors.New(r.Squash.String() + ": there is none")
	}
	if anon(r.AnonUID) == Anonymous || anon(r.AnonGID) == Anonymous {
		return p, fmt.Errorf("%d is nobody's id: the anonymous user and group need one of their own", uint32(Anonymous))
	}
	m := r.Match
	switch {
	case m == "":
		return p, errors.New("whom does it match? \"*\" is everybody")
	case m == "*":
		p.all = true
	case strings.HasPrefix(m, "@"):
		return p, errors.New("netgroups are not supported; name networks or a domain")
	case strings.Contains(m, "/"):
		return p, p.network(m)
	case strings.Contains(m, ":"), digits(m[strings.LastIndexByte(m, '.')+1:]):
		return p, p.address(m)
	case strings.HasPrefix(m, "*."):
		p.domain = strings.ToLower(m[1:])
		return p, checkHost(m[2:])
	default:
		p.host = strings.ToLower(strings.TrimSuffix(m, "."))
		return p, checkHost(p.host)
	}
	return p, nil
}

func (r *rule) address(m string) error {
	a, err := netip.ParseAddr(m)
	if err != nil {
		return fmt.Errorf("not an address: %w", err)
	}
	if a.Zone() != "" {
		return errors.New("an address of a rule has no zone")
	}
	a = a.Unmap()
	r.prefix = netip.PrefixFrom(a, a.BitLen())
	return nil
}

func (r *rule) network(m string) error {
	p, err := netip.ParsePrefix(m)
	if err != nil {
		return fmt.Errorf("not a network: %w", err)
	}
	if p.Addr().Is4In6() {
		const mapped = 128 - 32
		if p.Bits() < mapped {
			return errors.New("a network that is IPv4 in part")
		}
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-mapped)
	}
	r.prefix = p.Masked()
	return nil
}

// digits reports whether s is a number. The last part of a host's name never is (RFC
// 1123, section 2.1).
func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// Bounds of a name (RFC 1035, section 2.3.4).
const (
	maxHost  = 253
	maxLabel = 63
)

// checkHost is nil if s can be the name of a host: letters, digits, hyphens and,
// since they are in use, underscores.
func checkHost(s string) error {
	if len(s) > maxHost {
		return fmt.Errorf("a name has at most %d bytes", maxHost)
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
			return errors.New("not an address, a network, a name, a domain (*.example.org) or *")
		}
		for _, c := range []byte(label) {
			if c != '-' && c != '_' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
				return fmt.Errorf("%q is not for the name of a host", string(rune(c)))
			}
		}
	}
	return nil
}
