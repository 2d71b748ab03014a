package job

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strings"
)

// CheckRecord returns an error, ErrRecord, if dir has something in the place of a job's record that Copy would
// refuse whatever the job: it does not begin as a record does, is of a later program, or its beginning is damaged.
// So a caller knows it before it notes that the job runs. What cannot be read at all is left to Copy.
func CheckRecord(dir *os.Root) error {
	f, err := openRegular(dir, recordName, os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // nothing was written
	head := make([]byte, headerSize)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	if err := checkHeader(head[:n]); err != nil {
		return fmt.Errorf("%w: %w", ErrRecord, err)
	}
	return nil
}

// checkHeader checks what is the same in the headers of all jobs. One that is cut off is of a run that was killed
// at once.
func checkHeader(head []byte) error {
	magic := head[:min(len(head), len(recordMagic))]
	if !strings.HasPrefix(recordMagic, string(magic)) {
		return errNoRecord
	}
	if len(head) < headerSize {
		return nil
	}
	if version := binary.BigEndian.Uint32(head[len(recordMagic):]); version == 0 || version > recordVersion {
		return unknownVersion(version)
	}
	if binary.BigEndian.Uint32(head[headerSize-4:]) != crc32.Checksum(head[:headerSize-4], castagnoli) {
		return errors.New("its beginning is damaged")
	}
	return nil
}

// errNoRecord is a file that does not begin as a record does.
var errNoRecord = errors.New("it is not the record of a job")

func unknownVersion(version uint32) error {
	return fmt.Errorf("it is of version %d, which this program does not know", version)
}
