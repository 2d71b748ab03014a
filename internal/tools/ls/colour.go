package ls

import (
	"strings"

	"github.com/nfsbox/nfsbox/vfs"
)

// maxColours bounds the text of LS_COLORS, in bytes. A longer one is not used.
const maxColours = 64 << 10

// usual are the colours of dircolors(1) for what has no entry in LS_COLORS.
const usual = "di=01;34:ln=01;36:pi=33:so=01;35:bd=01;33:cd=01;33:ex=01;32:su=37;41:sg=30;43:tw=30;42:ow=34;42:st=37;44"

// Colours are those of a listing, by kind and by the end of a name. nil has none.
type Colours struct {
	kinds map[string]string // "di", "ln" to the numbers of SGR (ECMA-48)
	ends  map[string]string // ".tar"
}

// ParseColours reads the format of dircolors(1): "di=01;34:*.tar=01;31". What it does not
// understand it leaves out.
func ParseColours(env string) *Colours {
	c := &Colours{kinds: make(map[string]string), ends: make(map[string]string)}
	c.read(usual)
	if len(env) <= maxColours {
		c.read(env)
	}
	return c
}

func (c *Colours) read(list string) {
	for item := range strings.SplitSeq(list, ":") {
		key, sgr, ok := strings.Cut(item, "=")
		if !ok || strings.Trim(sgr, "0123456789;") != "" {
			continue // also "ln=target"
		}
		if end, isEnd := strings.CutPrefix(key, "*"); isEnd {
			c.ends[strings.ToLower(end)] = sgr
		} else {
			c.kinds[key] = sgr
		}
	}
}

// paint is text, the clean name of e, in the colour of e.
func (c *Colours) paint(text string, e *Entry) string {
	sgr := c.of(e)
	if sgr == "" || strings.Trim(sgr, "0;") == "" {
		return text
	}
	return "\x1b[" + sgr + "m" + text + "\x1b[0m"
}

func (c *Colours) of(e *Entry) string {
	if c == nil {
		return ""
	}
	for _, kind := range kinds(&e.Attr) {
		if sgr := c.kinds[kind]; sgr != "" {
			return sgr
		}
	}
	if e.Attr.Type != vfs.TypeReg {
		return ""
	}
	if dot := strings.LastIndexByte(e.Name, '.'); dot >= 0 {
		return c.ends[strings.ToLower(e.Name[dot:])]
	}
	return ""
}

// kinds are the kinds that an object is of, the most particular first.
func kinds(a *vfs.Attr) (of []string) {
	const otherWrite, sticky = 0o002, 0o1000
	add := func(kind string, is bool) {
		if is {
			of = append(of, kind)
		}
	}
	switch a.Type {
	case vfs.TypeDir:
		add("tw", a.Mode&otherWrite != 0 && a.Mode&sticky != 0)
		add("ow", a.Mode&otherWrite != 0)
		add("st", a.Mode&sticky != 0)
		add("di", true)
	case vfs.TypeSymlink:
		return []string{"ln"}
	case vfs.TypeFIFO:
		return []string{"pi"}
	case vfs.TypeSocket:
		return []string{"so"}
	case vfs.TypeBlock:
		return []string{"bd"}
	case vfs.TypeChar:
		return []string{"cd"}
	case vfs.TypeReg:
		add("su", a.Mode&0o4000 != 0)
		add("sg", a.Mode&0o2000 != 0)
		add("ex", a.Mode&0o111 != 0)
	}
	return of
}
