package config

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// problem is a value that is wrong by itself or together with others.
type problem struct {
	key   string // "io-pool", "export[1].dir"
	text  string
	cause error // or nil: then text is all
}

// message is what is wrong, as an error that wraps the cause.
func (p problem) message(where string) error {
	if p.cause != nil {
		return fmt.Errorf("%s: %w", where, p.cause)
	}
	return fmt.Errorf("%s: %s", where, p.text)
}

// KeyError is what is wrong with the file, or whatever else, that the value of a key names.
type KeyError struct {
	Key string // "log.file", "export[1].dir"
	Err error
}

// Error is the key, and what is wrong.
func (e *KeyError) Error() string { return e.Key + ": " + e.Err.Error() }

// Unwrap is what is wrong, without the key.
func (e *KeyError) Unwrap() error { return e.Err }

// problems are all that check has found.
type problems []problem

func (p *problems) add(key, format string, args ...any) {
	*p = append(*p, problem{key: key, text: fmt.Sprintf(format, args...)})
}

func (p *problems) within(key string, v, low, high int64) {
	if v < low || v > high {
		p.add(key, "%d is not within %d and %d", v, low, high)
	}
}

// size is within for sizes.
func (p *problems) size(key string, v, low, high Size) {
	if v < low || v > high {
		p.add(key, "%v is not within %v and %v", v, low, high)
	}
}

// positive refuses 0, which packages below would take for their default.
func (p *problems) positive(key string, d Duration) {
	if d <= 0 {
		p.add(key, "%v is no time to wait", d)
	}
}

func (p *problems) oneOf(key, v string, of ...string) {
	if !slices.Contains(of, v) {
		p.add(key, "%q is not one of %s", v, strings.Join(of, ", "))
	}
}

func (p *problems) addresses(key string, all []string) {
	p.within(key, int64(len(all)), 0, maxListen)
	for i, a := range all {
		p.address(fmt.Sprintf("%s[%d]", key, i), a)
	}
}

// address refuses what is not HOST:PORT. HOST may be empty.
func (p *problems) address(key, a string) {
	_, port, err := net.SplitHostPort(a)
	if err != nil {
		p.add(key, "%q is no address and port, such as 127.0.0.1:2049 or [::]:2049", a)
		return
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		p.add(key, "%q: the port is not within 0 and 65535", a)
	}
}
