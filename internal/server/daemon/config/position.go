package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// positions are the lines of a file's keys: "io-pool", "export[1]",
// "export[1].clients[0].match". The decoder knows where a value of the wrong kind
// stands; these are for values that are wrong beside others.
type positions map[string]int

// walkPositions walks a text that the decoder has seen before.
func walkPositions(text []byte) *positionWalk {
	w := &positionWalk{found: make(positions), bare: make(map[string]string), count: make(map[string]int)}
	for i, b := range text {
		if b == '\n' {
			w.ends = append(w.ends, uint32(i))
		}
	}
	w.p.Reset(text)
	prefix := ""
	for w.p.NextExpression() {
		switch e := w.p.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			_, line := w.key("", e.Key())
			w.begins = append(w.begins, beginning{line: line})
			prefix = w.table(e)
		case unstable.KeyValue:
			key, line := w.key(prefix, e.Key())
			w.begins = append(w.begins, beginning{line, key})
			w.keyValue(prefix, e)
		}
	}
	return w
}

type positionWalk struct {
	p     unstable.Parser
	ends  []uint32 // offsets of the line feeds
	found positions
	bare  map[string]string // values that are neither strings nor made of others
	count map[string]int    // tables of each array so far

	begins []beginning // in the order of the file
}

// beginning is where a key and its value begin, or with no key the head of a table.
type beginning struct {
	line int
	key  string
}

// around returns the key whose value has that line, the line with which it begins, and the
// one with which what follows does. key is "" if there is none: it is the head of a table.
func (w *positionWalk) around(line int) (from, to int, key string) {
	to = len(w.ends) + 2
	for i := len(w.begins) - 1; i >= 0; i-- {
		b := w.begins[i]
		if b.line <= line {
			return b.line, to, b.key
		}
		to = b.line
	}
	return 0, 0, ""
}

func (w *positionWalk) line(r unstable.Range) int {
	n, _ := slices.BinarySearch(w.ends, r.Offset)
	return n + 1
}

// table is the header of a table; it returns the prefix of the keys that follow.
func (w *positionWalk) table(e *unstable.Node) string {
	key, line := w.key("", e.Key())
	if e.Kind == unstable.ArrayTable {
		n := w.count[key]
		w.count[key]++
		key = fmt.Sprintf("%s[%d]", key, n)
	}
	w.found[key] = line
	return key + "."
}

func (w *positionWalk) keyValue(prefix string, e *unstable.Node) {
	key, line := w.key(prefix, e.Key())
	w.found[key] = line
	w.value(key, e.Value())
}

// value looks into arrays and tables that stand where a value does.
func (w *positionWalk) value(key string, v *unstable.Node) {
	switch v.Kind {
	case unstable.InlineTable:
		for it := v.Children(); it.Next(); {
			w.keyValue(key+".", it.Node())
		}
	case unstable.Array:
		n := 0
		for it := v.Children(); it.Next(); {
			child := it.Node()
			if child.Kind == unstable.Comment {
				continue
			}
			at := fmt.Sprintf("%s[%d]", key, n)
			if child.Raw.Length > 0 {
				w.found[at] = w.line(child.Raw)
			}
			w.value(at, child)
			n++
		}
	case unstable.Integer, unstable.Float, unstable.Bool:
		w.bare[key] = string(v.Data)
	}
}

// key joins a dotted key, and says on which line it is. What lies in an array of
// tables belongs to the last of them. The decoder takes keys in capitals, too.
func (w *positionWalk) key(prefix string, it unstable.Iterator) (key string, line int) {
	key = prefix
	for it.Next() {
		key += strings.ToLower(string(it.Node().Data))
		line = w.line(it.Node().Raw)
		if it.IsLast() {
			break
		}
		if n := w.count[key]; n > 0 {
			key = fmt.Sprintf("%s[%d]", key, n-1)
		}
		key += "."
	}
	return key, line
}

// line is that of the key, or of what it lies in.
func (p positions) line(key string) (int, bool) {
	for key != "" {
		if n, ok := p[key]; ok {
			return n, true
		}
		cut := max(strings.LastIndexByte(key, '.'), strings.LastIndexByte(key, '['), 0)
		key = key[:cut]
	}
	return 0, false
}
