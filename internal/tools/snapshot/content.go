package snapshot

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"

	"github.com/nfsbox/nfsbox/vfs"
)

// Piece is bytes in the store: an object of their own, or a range of a pack.
type Piece struct {
	Size   int64  `json:"n"`              // of the bytes
	Packed int64  `json:"z,omitempty"`    // as they are stored, by zstd; 0: as they are
	Sum    digest `json:"sum"`            // SHA-256 of what is stored, which names an object of its own
	Pack   *int64 `json:"pack,omitempty"` // the number of the pack's object; nil: an object of its own
	At     int64  `json:"at,omitempty"`   // where the range begins in the pack
}

// stored is how long what is stored is.
func (p *Piece) stored() int64 {
	if p.Packed > 0 {
		return p.Packed
	}
	return p.Size
}

// extent is which bytes of its object a piece is. One that has an object of its own is all of it, n < 0, so that one that is too long is found.
func (p *Piece) extent() (off, n int64) {
	if p.Pack == nil {
		return p.At, -1
	}
	return p.At, p.stored()
}

// check returns an error unless p can be, of most bytes at most.
func (p *Piece) check(most int64) error {
	switch {
	case p.Size <= 0 || p.Size > most:
		return fmt.Errorf("a piece of %d bytes", p.Size)
	case p.Packed < 0 || p.Packed >= p.Size:
		return fmt.Errorf("a piece of %d bytes that is stored as %d", p.Size, p.Packed)
	case p.Pack == nil && p.At != 0:
		return errors.New("a range of no pack")
	case p.Pack != nil && (*p.Pack < 0 || *p.Pack >= maxObjects):
		return fmt.Errorf("a pack of number %d", *p.Pack)
	case p.At < 0 || p.At > maxPack-p.stored():
		return fmt.Errorf("a range of %d bytes at %d, outside of its pack", p.stored(), p.At)
	}
	return nil
}

// checkOwn is check for what is never in a pack.
func (p *Piece) checkOwn() error {
	if p.Pack != nil {
		return errors.New("a range of a pack, where an object of its own should be")
	}
	return p.check(maxPlain)
}

// Extent is a range of a file.
type Extent struct {
	Off int64 `json:"off"`
	Len int64 `json:"len"`
}

// Content is the bytes of a file: its data, in pieces, without its holes. The zero Content is that of
// an empty file.
type Content struct {
	Pieces []Piece  `json:"pieces,omitempty"`
	Lists  []List   `json:"lists,omitempty"`  // instead of Pieces, if there are many
	Holes  []Extent `json:"holes,omitempty"`  // sorted
	Sparse *Piece   `json:"sparse,omitempty"` // instead of Holes, if there are many: an object with them
}

// List is an object that has the pieces of a part of a file, as lines.
type List struct {
	Piece
	Data int64 `json:"data"` // the size of these pieces together
}

// data is how many bytes of data there are.
func (c *Content) data() (n int64) {
	for i := range c.Pieces {
		n += c.Pieces[i].Size
	}
	for i := range c.Lists {
		n += c.Lists[i].Data
	}
	return n
}

// InPack says in which pack the content is, and how many bytes of it. ok is false if it is not in one.
func (c *Content) InPack() (number, stored int64, ok bool) {
	if len(c.Pieces) != 1 || c.Pieces[0].Pack == nil {
		return 0, 0, false
	}
	return *c.Pieces[0].Pack, c.Pieces[0].stored(), true
}

// check returns an error unless c can be the content of a file of that size.
func (c *Content) check(size uint64) error {
	if len(c.Pieces) > maxInline || len(c.Lists) > maxLists || len(c.Holes) > maxInlineHoles {
		return errors.New("too many pieces or holes")
	}
	if len(c.Pieces) > 0 && len(c.Lists) > 0 || len(c.Holes) > 0 && c.Sparse != nil {
		return errors.New("pieces or holes that are there twice")
	}
	data := int64(0)
	for i := range c.Pieces {
		if err := c.Pieces[i].check(maxPiece); err != nil {
			return err
		}
		data += c.Pieces[i].Size // at most maxInline times maxPiece
	}
	for i := range c.Lists {
		l := &c.Lists[i]
		if err := l.checkOwn(); err != nil {
			return err
		}
		if l.Data <= 0 || l.Data > math.MaxInt64-data {
			return fmt.Errorf("a list of %d bytes", l.Data)
		}
		data += l.Data
	}
	if c.Sparse != nil {
		if data > int64(size) {
			return fmt.Errorf("%d bytes of data in a file of %d", data, size)
		}
		return c.Sparse.checkOwn()
	}
	return checkHoles(c.Holes, data, int64(size))
}

// checkHoles returns an error unless holes lie in order in a file, and leave data bytes of it.
func checkHoles(holes []Extent, data, size int64) error {
	end := int64(0)
	for _, h := range holes {
		if h.Off < end || h.Len <= 0 || h.Off > size-h.Len {
			return fmt.Errorf("a hole of %d bytes at %d", h.Len, h.Off)
		}
		end = h.Off + h.Len
		data += h.Len // holes do not overlap: the sum is at most two times size
		if data < 0 {
			break
		}
	}
	if data != size {
		return fmt.Errorf("data and holes of %d bytes in a file of %d", data, size)
	}
	return nil
}

// Extra is what an object has beside its attributes.
type Extra struct {
	Access  [][3]uint32 `json:"access,omitempty"`  // access control list: tag, id, rights (vfs.ACLEntry)
	Default [][3]uint32 `json:"default,omitempty"` // that of what is made in a directory
	Xattrs  []Xattr     `json:"xattrs,omitempty"`
	Far     *Piece      `json:"far,omitempty"` // instead of all that, if it is long: an object with it
}

// Xattr is an extended attribute.
type Xattr struct {
	Name  text   `json:"name"`
	Value []byte `json:"value,omitempty"`
}

func (x *Extra) empty() bool {
	return len(x.Access) == 0 && len(x.Default) == 0 && len(x.Xattrs) == 0 && x.Far == nil
}

func (x *Extra) check() error {
	if x.Far != nil {
		return x.Far.checkOwn()
	}
	for _, list := range [][][3]uint32{x.Access, x.Default} {
		for _, e := range list {
			if e[0] > math.MaxUint8 || e[2] > 7 {
				return errors.New("an access control list that cannot be")
			}
		}
	}
	for _, a := range x.Xattrs {
		if a.Name == "" || len(a.Name) > vfs.MaxXattrName || len(a.Value) > vfs.MaxXattr {
			return errors.New("an extended attribute that cannot be")
		}
	}
	return nil
}

// SetACL sets the lists.
func (x *Extra) SetACL(acl vfs.ACL) {
	x.Access, x.Default = triples(acl.Access), triples(acl.Default)
}

// AddXattr adds an extended attribute.
func (x *Extra) AddXattr(name string, value []byte) {
	x.Xattrs = append(x.Xattrs, Xattr{text(name), value})
}

func triples(list []vfs.ACLEntry) (t [][3]uint32) {
	for _, e := range list {
		t = append(t, [3]uint32{uint32(e.Tag), e.ID, e.Perm})
	}
	return t
}

func entries(t [][3]uint32) (list []vfs.ACLEntry) {
	for _, e := range t {
		list = append(list, vfs.ACLEntry{Tag: vfs.ACLTag(e[0]), ID: e[1], Perm: e[2]})
	}
	return list
}

// decodeExtra reads what an object has that was long.
func decodeExtra(b []byte) (*Extra, error) {
	x := new(Extra)
	if err := json.Unmarshal(b, x); err != nil {
		return nil, err
	}
	if x.Far != nil {
		return nil, errors.New("it leads on")
	}
	return x, x.check()
}

// decodeHoles reads the holes of a file that has many.
func decodeHoles(b []byte, data, size int64) (holes []Extent, err error) {
	if err := json.Unmarshal(b, &holes); err != nil {
		return nil, err
	}
	if len(holes) > MaxHoles {
		return nil, fmt.Errorf("%d holes", len(holes))
	}
	return holes, checkHoles(holes, data, size)
}
