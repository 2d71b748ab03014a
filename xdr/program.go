package xdr

import "fmt"

// Program describes one version of an RPC program (RFC 5531, section 12) as its
// specification does. Generated code declares one per version; clients call
// through it and servers bind their handlers to it. It is never changed.
type Program struct {
	Name    string // the version's name: "NFS_V3"
	Number  uint32 // of the program: 100003
	Version uint32 // 3
	Procs   []Proc // by ascending number; numbers may have gaps
}

// Proc describes one procedure.
type Proc struct {
	Name    string // as the specification has it: "NFSPROC3_READ"
	Program uint32
	Version uint32
	Number  uint32
	// Repeatable: a second execution does no harm and gives the same answer, so
	// a call whose reply was lost is simply sent again. What is not repeatable
	// (REMOVE, RENAME) needs a server's duplicate request cache or a judgement.
	Repeatable bool
	// BulkArgs and BulkResult say that the arguments, the results, carry file
	// data outside the codec.
	BulkArgs   bool
	BulkResult bool
}

// Proc returns the procedure with this number, or nil.
func (p *Program) Proc(number uint32) *Proc {
	// Numbers are dense in every program that we know, so the index is the
	// usual answer; a gap costs a scan.
	if int64(number) < int64(len(p.Procs)) && p.Procs[number].Number == number {
		return &p.Procs[number]
	}
	for i := range p.Procs {
		if p.Procs[i].Number == number {
			return &p.Procs[i]
		}
	}
	return nil
}

// String is the procedure's name, or its numbers where it has none.
func (p *Proc) String() string {
	if p.Name != "" {
		return p.Name
	}
	return fmt.Sprintf("%d/%d/%d", p.Program, p.Version, p.Number)
}

// Void is the type of no arguments and of no results.
type Void struct{}

// AppendXDR appends nothing.
func (Void) AppendXDR(b []byte) ([]byte, error) { return b, nil }

// DecodeXDR consumes nothing.
func (Void) DecodeXDR(d *Decoder) error { return d.Err() }
