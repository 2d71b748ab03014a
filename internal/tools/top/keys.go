package top

// Key is a key that Run understands.
type Key byte

// The keys. Others do nothing.
const (
	KeyCalls   Key = 'o' // sort clients and files by calls
	KeyBytes   Key = 'b' // by bytes
	KeyLatency Key = 'p' // by p99
	KeyFlight  Key = 'f' // by calls in flight; files, which have none, by calls
	KeyHelp    Key = '?'
	KeyQuit    Key = 'q'
	KeyUp      Key = 'A' // the rows before
	KeyDown    Key = 'B' // the rows behind
	KeyRight   Key = 'C' // sort by the next of these columns
	KeyLeft    Key = 'D' // by the one before
)

// orders are the keys by which rows are sorted, as Left and Right go through them.
const orders = "obpf"

// Keys returns the keys in what a terminal has sent: letters, and arrows as the escape
// sequences of ECMA-48 (ESC [ A) and of a terminal in application mode (ESC O A).
func Keys(sent []byte) (keys []Key) {
	for i := 0; i < len(sent); i++ {
		c := sent[i]
		if c == 0x1b {
			if i+2 < len(sent) && (sent[i+1] == '[' || sent[i+1] == 'O') {
				if a := sent[i+2]; a >= 'A' && a <= 'D' {
					keys = append(keys, Key(a))
				}
				i += 2
			}
			continue
		}
		switch k := Key(c); k {
		case KeyCalls, KeyBytes, KeyLatency, KeyFlight, KeyHelp, KeyQuit:
			keys = append(keys, k)
		}
	}
	return keys
}

// press changes what is drawn, and reports whether to go on.
func (s *show) press(k Key) bool {
	at := 0
	for i := range len(orders) {
		if Key(orders[i]) == s.look.Sort {
			at = i
		}
	}
	switch k {
	case KeyQuit:
		return false
	case KeyHelp:
		s.look.Help = !s.look.Help
	case KeyUp:
		s.look.Skip = max(s.look.Skip-1, 0)
	case KeyDown:
		if s.last != nil {
			s.look.Skip = min(s.look.Skip+1, max(len(s.last.Clients), len(s.last.Files), 1)-1)
		}
	case KeyRight:
		s.look.Sort = Key(orders[(at+1)%len(orders)])
	case KeyLeft:
		s.look.Sort = Key(orders[(at+len(orders)-1)%len(orders)])
	default:
		s.look.Sort, s.look.Skip = k, 0
	}
	return true
}

// help is what ? shows.
func help() []string {
	return []string{
		"o  sort clients and files by operations    b  by bytes    p  by p99    f  by calls in flight",
		"left, right  sort by the column before, or the next    up, down  the rows before, or behind",
		"?  this help    q  quit",
	}
}
