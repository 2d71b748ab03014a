package bench

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
)

const (
	// DefaultFileSize is how large the files of upload are, in bytes.
	DefaultFileSize = 50 << 10

	// DefaultFiles is how many files upload makes.
	DefaultFiles = 1000

	// MaxFiles bounds the files of a dataset.
	MaxFiles = 1 << 40

	// DefaultTag is the tag of a dataset.
	DefaultTag = "files"

	// MaxTag bounds the length of a tag, in bytes.
	MaxTag = 64
)

const (
	// fanOut is in how many directories the files of a dataset are, if they are
	// that many. What is created in, or removed from, one directory takes turns at its lock; that
	// lock is not what is to be measured.
	fanOut = 64

	// A file's contents are a window into bytes that all files share, so that
	// two files of a dataset differ and nothing needs to be copied. There are so
	// many windows, so many bytes apart.
	windows    = 4096
	windowStep = 64

	// firstWarmUp is the number of the first file that the warm-up makes. No
	// dataset is that large.
	firstWarmUp = 1 << 62
	// warmUpFiles bounds the files that the warm-up makes, which are written over
	// beyond that.
	warmUpFiles = 1024
)

// dataset is what upload makes and the verbs after it find: names and contents of
// files, from a seed.
type dataset struct {
	seed uint64
	size int
	dirs uint64 // directories
	data []byte // the windows
}

func newDataset(o *Options) *dataset {
	return &dataset{seed: mix(o.Seed), size: o.Size, dirs: min(o.Files, fanOut), data: noise(o.Size+windows*windowStep, o.Seed)}
}

// item is a file of a dataset.
type item struct {
	dir  int    // in which directory
	name string // there
	data []byte // shared: not to be changed
}

// item is the i-th file. Those of one dataset have different names, as mix maps no
// two numbers to one.
func (d *dataset) item(i uint64) item {
	const golden = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio, and odd
	number := mix(d.seed + i*golden)
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], number)
	from := number % windows * windowStep
	return item{dir: int(i % d.dirs), name: Prefix + hex.EncodeToString(raw[:]), data: d.data[from : from+uint64(d.size)]}
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014), a bijection.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func dirName(i int) string { return hex.EncodeToString([]byte{byte(i)}) }

// checkTag refuses what would not be part of one name, or of a polite one.
func checkTag(tag string) error {
	const legal = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
	if len(tag) > MaxTag || strings.Trim(tag, legal) != "" {
		return usage("tag %q: up to %d letters, digits, '.', '_' and '-' are possible", tag, MaxTag)
	}
	return nil
}

// ourSet reports whether upload gives a dataset's directory such a name.
func ourSet(name string) bool {
	tag, ok := strings.CutPrefix(name, Prefix)
	return ok && tag != "" && checkTag(tag) == nil
}

// ourFile reports whether upload gives a file of a dataset such a name: the prefix,
// 16 digits and, while it is under way over NFS, what upload puts behind them.
// Somebody's own files that are named by a hash have no such prefix.
func ourFile(name string) bool {
	name, ok := strings.CutPrefix(name, Prefix)
	name, rest, temporary := strings.Cut(name, ".")
	if !ok || !digits(name, 16, 16) {
		return false
	}
	if !temporary {
		return true
	}
	run, number, ok := strings.Cut(rest, ".")
	return ok && digits(run, 2*runBytes, 2*runBytes) && digits(number, 1, 16)
}

func ourDir(name string) bool { return digits(name, 2, 2) }

// digits reports whether s is from least to most hexadecimal digits in lower case.
func digits(s string, least, most int) bool {
	return len(s) >= least && len(s) <= most && strings.Trim(s, "0123456789abcdef") == ""
}
