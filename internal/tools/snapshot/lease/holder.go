package lease

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Kind is what a lease is for.
type Kind string

// The kinds. All but Prune are shared.
const (
	Backup Kind = "backup" // relies on objects that it has found in the store
	Read   Kind = "read"   // reads a snapshot: a restore, a check
	Prune  Kind = "prune"  // removes objects; exclusive
)

func (k Kind) exclusive() bool { return k == Prune }

func (k Kind) known() bool { return k == Backup || k == Read || k == Prune }

const (
	prefix    = "leases/"
	idDigits  = 32 // hexadecimal digits of an id
	genDigits = 8  // decimal digits of a number
	maxGen    = 99_999_999
	// maxContent bounds a lease, in bytes. A longer one is malformed.
	maxContent = 4 << 10
	// maxHost and maxCommand bound what a lease says of its holder, in bytes. The rest is left out.
	maxHost, maxCommand = 256, 512
)

// name is the key of a lease, in parts.
type name struct {
	kind Kind
	id   string
	gen  int
}

func (n *name) key() string {
	return fmt.Sprintf("%s%s-%s-%0*d", prefix, n.kind, n.id, genDigits, n.gen)
}

// parseName reads a key; false if it is none of a lease.
func parseName(key string) (n name, ok bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return n, false
	}
	kind, rest, _ := strings.Cut(rest, "-")
	id, number, _ := strings.Cut(rest, "-")
	gen, err := strconv.ParseUint(number, 10, 32)
	n = name{Kind(kind), id, int(gen)}
	return n, err == nil && n.kind.known() && len(id) == idDigits && strings.Trim(id, "0123456789abcdef") == "" && n.key() == key
}

// Holder is whose a lease is, as it says itself. Nothing of it is proved.
type Holder struct {
	Kind    Kind      `json:"kind"`
	Host    string    `json:"host,omitempty"`
	Command string    `json:"command,omitempty"`
	Began   time.Time `json:"began"` // when it began to ask for the lease, by the host's clock; refreshing it changes nothing of that
	process
}

// process is a process of a host. One of another boot, or of another PID namespace, says nothing to us.
type process struct {
	PID   int    `json:"pid,omitempty"`
	Boot  string `json:"boot,omitempty"`  // the boot and the PID namespace; "" if the system does not tell
	Start uint64 `json:"start,omitempty"` // when the process began, in ticks after the boot; 0: not known
}

// Text says whose the lease is, for people. What a holder has written of itself may be hostile to terminals: it is quoted.
func (h *Holder) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", h.Kind)
	if h.Command != "" {
		fmt.Fprintf(&b, " (%s)", strings.Trim(strconv.Quote(h.Command), `"`))
	}
	if h.Host != "" {
		fmt.Fprintf(&b, " on %s", strings.Trim(strconv.Quote(h.Host), `"`))
	}
	if h.PID != 0 {
		fmt.Fprintf(&b, ", pid %d", h.PID)
	}
	if !h.Began.IsZero() {
		fmt.Fprintf(&b, ", since %s", h.Began.UTC().Format(time.RFC3339))
	}
	return b.String()
}

func (h *Holder) encode() ([]byte, error) {
	own := *h
	own.Host, own.Command = cut(own.Host, maxHost), cut(own.Command, maxCommand)
	return json.Marshal(&own)
}

// cut is the first n bytes of s at most, in whole characters.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "?")
	end := 0
	for i, r := range s {
		if i+utf8.RuneLen(r) > n {
			return s[:end]
		}
		end = i + utf8.RuneLen(r)
	}
	return s
}

// decodeHolder reads what a lease says. What it means comes from its key.
func decodeHolder(b []byte) (h Holder, err error) {
	if len(b) > maxContent {
		return h, errors.New("a lease that is too long")
	}
	if err := json.Unmarshal(b, &h); err != nil {
		return Holder{}, err
	}
	if !h.Kind.known() || h.PID < 0 || len(h.Host) > maxContent || len(h.Command) > maxContent {
		return Holder{}, errors.New("a lease that cannot be")
	}
	return h, nil
}
