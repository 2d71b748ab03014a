package job

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/nfsbox/nfsbox/internal/tools/transfer"
	"github.com/nfsbox/nfsbox/vfs"
)

// PartsFile is the name of the file, beside the record, that has the files which are copied in part. It
// is there only while there are some, and is replaced as a whole. All numbers are big endian.
//
//	header: magic (8), version (4), number of parts (4)
//	part:   length of the path (2), the path; length of the temporary's name (1), the name;
//	        in version 2 length of what a copy that is made whole goes on by (2), and that;
//	        of the source: fsid (16), file id (8), size (8), mtime (12), ctime (12);
//	        of the temporary: fsid (16), file id (8), uid (4), gid (4); bytes (8), end (8)
//	CRC-32C over all before it (4)
//
// A program that does not know the file, or its version, copies the files anew.
const PartsFile = "parts"

const (
	partsMagic   = "NFSBOXPT"
	partsVersion = 1
	partsWhole   = 2 // the version if a part is of a copy that is made whole
	partsHeader  = len(partsMagic) + 8
	partSize     = 104 // without names

	// maxParts is how many files copied in part are remembered: as many as are copied at once. Further
	// ones are copied anew by the next run.
	maxParts = MaxParallel
	// maxPartsFile is how many bytes of the file are read. A longer one is damaged.
	maxPartsFile = partsHeader + maxParts*(5+vfs.MaxPath+vfs.MaxName+maxWhole+partSize) + 4
	// maxWhole bounds transfer.Mark.Whole, in bytes. A file with a longer one is copied anew.
	maxWhole = 4096
)

// Part is a file that is copied in part.
type Part struct {
	Path string // in the copy; of a copy of one file its name
	transfer.Mark
}

var errParts = errors.New("it is damaged, or of a version that this program does not know")

// Parts reads which files a job has copied in part. Without the file there are none.
func Parts(dir *os.Root) ([]Part, error) {
	f, err := openRegular(dir, PartsFile, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, int64(maxPartsFile)+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	all, err := parseParts(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", PartsFile, err)
	}
	return all, nil
}

// writeParts replaces the file, synced. Without parts it is removed.
func writeParts(dir *os.Root, all []Part) error {
	const temp = PartsFile + ".tmp"
	if len(all) == 0 {
		return absent(dir.Remove(PartsFile))
	}
	if err := absent(dir.Remove(temp)); err != nil {
		return err // to open what may be there, such as a pipe, could wait
	}
	f, err := dir.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(appendParts(nil, all))
	if err = errors.Join(err, f.Sync()); err != nil {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Close(), dir.Rename(temp, PartsFile))
}

// absent is err, of a removal, unless there was nothing.
func absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func appendParts(b []byte, all []Part) []byte {
	start := len(b)
	b = append(b, partsMagic...)
	version := uint32(partsVersion)
	if slices.ContainsFunc(all, func(p Part) bool { return p.Whole != "" }) {
		version = partsWhole
	}
	b = binary.BigEndian.AppendUint32(b, version)
	b = binary.BigEndian.AppendUint32(b, uint32(len(all)))
	for i := range all {
		b = all[i].append(b, version)
	}
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
}

func (p *Part) append(b []byte, version uint32) []byte {
	put := func(all ...uint64) {
		for _, n := range all {
			b = binary.BigEndian.AppendUint64(b, n)
		}
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(p.Path)))
	b = append(b, p.Path...)
	b = append(append(b, byte(len(p.Temp))), p.Temp...)
	if version == partsWhole {
		b = binary.BigEndian.AppendUint16(b, uint16(len(p.Whole)))
		b = append(b, p.Whole...)
	}
	put(p.SourceFSID[0], p.SourceFSID[1], p.SourceID, p.Size)
	b = appendTime(appendTime(b, p.Mtime), p.Ctime)
	put(p.TempFSID[0], p.TempFSID[1], p.TempID)
	b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, p.UID), p.GID)
	put(p.Bytes, p.End)
	return b
}

// parseParts decodes the file. It is all good, or an error.
func parseParts(b []byte) ([]Part, error) {
	if len(b) < partsHeader+4 || len(b) > maxPartsFile || string(b[:len(partsMagic)]) != partsMagic {
		return nil, errParts
	}
	body, sum := b[:len(b)-4], binary.BigEndian.Uint32(b[len(b)-4:])
	version, n := binary.BigEndian.Uint32(b[8:]), binary.BigEndian.Uint32(b[12:])
	if sum != crc32.Checksum(body, castagnoli) || version != partsVersion && version != partsWhole || n > maxParts {
		return nil, errParts
	}
	all := make([]Part, 0, n)
	rest := body[partsHeader:]
	for range n {
		var p Part
		var ok bool
		if rest, ok = p.parse(rest, version); !ok || slices.ContainsFunc(all, func(o Part) bool { return o.Temp == p.Temp }) {
			return nil, errParts
		}
		all = append(all, p)
	}
	if len(rest) > 0 {
		return nil, errParts
	}
	return all, nil
}

// parse decodes a part, and returns what follows it.
func (p *Part) parse(b []byte, version uint32) (rest []byte, ok bool) {
	take := func(n int) []byte {
		if n > len(b) {
			n, ok = 0, false
		}
		taken := b[:n]
		b = b[n:]
		return taken
	}
	ok = true
	if n := take(2); ok {
		p.Path = string(take(int(binary.BigEndian.Uint16(n))))
	}
	if n := take(1); ok {
		p.Temp = string(take(int(n[0])))
	}
	if version == partsWhole && ok {
		if n := take(2); ok {
			p.Whole = string(take(int(binary.BigEndian.Uint16(n))))
		}
	}
	f := take(partSize)
	if !ok {
		return nil, false
	}
	u64 := func(at int) uint64 { return binary.BigEndian.Uint64(f[at:]) }
	p.SourceFSID, p.SourceID, p.Size = [2]uint64{u64(0), u64(8)}, u64(16), u64(24)
	p.Mtime, p.Ctime = parseTime(f[32:]), parseTime(f[44:])
	p.TempFSID, p.TempID = [2]uint64{u64(56), u64(64)}, u64(72)
	p.UID, p.GID = binary.BigEndian.Uint32(f[80:]), binary.BigEndian.Uint32(f[84:])
	p.Bytes, p.End = u64(88), u64(96)
	return b, p.sane()
}

// sane reports whether the part can be one of a copy.
func (p *Part) sane() bool {
	for name := range strings.SplitSeq(p.Path, "/") {
		if vfs.CheckName(name) != nil {
			return false
		}
	}
	return len(p.Path) <= vfs.MaxPath && transfer.LooksTemp(p.Temp) && len(p.Whole) <= maxWhole && (0 < p.Bytes || p.Whole != "") && p.End <= p.Bytes && p.Bytes <= p.Size
}
