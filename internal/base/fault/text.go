package fault

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
)

// Interrupted begins the text of an error that an interruption caused.
const Interrupted = "interrupted"

// Text is err in one line: what failed, on what, and why. What one error on the way has said
// is not said by the next one again, and of joined errors with one text one is left. Names in
// it are as the peer gave them: the caller cleans them before a terminal sees them.
func Text(err error) string {
	if err == nil {
		return ""
	}
	said := said(parts(err))
	text := strings.Join(said, ": ")
	if !errors.Is(err, context.Canceled) {
		return text
	}
	if text == "" {
		return Interrupted
	}
	return Interrupted + ": " + text
}

// parts takes an error apart: its own words, and then those of its cause.
func parts(err error) []string {
	switch e := err.(type) { //nolint:errorlint // one layer is taken off at a time
	case *net.OpError:
		return opParts(e)
	case *net.DNSError:
		return []string{dnsText(e)}
	case *os.SyscallError:
		return parts(e.Err)
	case *fs.PathError:
		if e.Op == "resolve" { // it says no more than that the path is one
			return append([]string{e.Path}, parts(e.Err)...)
		}
		return append([]string{e.Op + " " + e.Path}, parts(e.Err)...)
	case interface{ Unwrap() error }:
		if inner := e.Unwrap(); inner != nil {
			return around(err.Error(), inner)
		}
	case interface{ Unwrap() []error }:
		return around(err.Error(), e.Unwrap()...)
	}
	if err == context.Canceled { //nolint:errorlint // itself: wrapped, it has come from above
		return nil // Text says it, in front
	}
	return []string{err.Error()}
}

// around takes apart a text that holds the texts of causes, in their order, and words around
// them. Causes that are not in it are not said.
func around(text string, causes ...error) (out []string) {
	if joined(text, causes) {
		return []string{joinedText(causes)}
	}
	for _, cause := range causes {
		inner := cause.Error()
		at := strings.Index(text, inner)
		if len(causes) == 1 && strings.HasSuffix(text, inner) {
			at = len(text) - len(inner) // its words may occur in what is before it
		}
		if at < 0 {
			continue
		}
		words := text[:at]
		out = appendWords(out, words)
		between := words != "" && !strings.HasSuffix(words, ": ")
		said := parts(cause)
		if between && len(said) == 0 {
			said = []string{Interrupted}
		}
		out = appendParts(out, said, between)
		text = text[at+len(inner):]
	}
	return appendWords(out, text)
}

// appendWords appends words that stand between causes.
func appendWords(out []string, words string) []string {
	goOn := words != "" && !strings.HasPrefix(words, ": ")
	words = strings.TrimPrefix(strings.TrimSuffix(words, ": "), ": ")
	if words == "" {
		return out
	}
	return appendParts(out, strings.Split(words, ": "), goOn)
}

// appendParts appends parts; if they go on where the last one ends, the first is one with it.
func appendParts(out, more []string, goOn bool) []string {
	if goOn && len(out) > 0 && len(more) > 0 {
		out[len(out)-1] += more[0]
		more = more[1:]
	}
	return append(out, more...)
}

// joined reports whether errors.Join has made text of causes.
func joined(text string, causes []error) bool {
	return len(causes) > 1 && errors.Join(causes...).Error() == text
}

// joinedText is what joined errors say, each text once.
func joinedText(causes []error) string {
	var texts []string
	for _, cause := range causes {
		if text := strings.Join(said(parts(cause)), ": "); text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "; ")
}

// opParts are the address and the cause. Its operation and the address of this side say nothing
// to people.
func opParts(e *net.OpError) (out []string) {
	if dns, ok := errors.AsType[*net.DNSError](e.Err); ok {
		return parts(dns)
	}
	if e.Addr != nil {
		out = []string{e.Addr.String()}
	}
	return append(out, parts(e.Err)...)
}

func dnsText(e *net.DNSError) string {
	switch {
	case e.IsNotFound:
		return "no host has the name " + e.Name
	case e.IsTimeout:
		return "the name server did not say in time where " + e.Name + " is"
	}
	return "the name server cannot say where " + e.Name + " is (" + e.Err + ")"
}

// said drops the parts that earlier ones have said. The cause, the last part, stays, unless an
// earlier one is the same.
func said(all []string) (out []string) {
	for i, part := range all {
		last := i+1 == len(all)
		if slices.Contains(out, part) || !last && (part == "nfs" || part == "oncrpc" || slices.ContainsFunc(out, func(before string) bool { return says(before, part) })) {
			continue
		}
		out = append(out, part)
	}
	return out
}

// says reports whether what stands before says a part already: it is the host of a URL, or the
// end of a path that "resolve" or another operation names.
func says(before, part string) bool {
	if _, rest, ok := strings.Cut(before, "://"); ok && !strings.Contains(part, " ") {
		host, _, _ := strings.Cut(rest, "/")
		if host == part || strings.HasPrefix(host, part+":") {
			return true
		}
	}
	_, path, ok := strings.Cut(part, " ")
	return endsIn(before, part) || ok && endsIn(before, path)
}

// endsIn reports whether a URL or path ends in another path.
func endsIn(whole, path string) bool {
	path = strings.Trim(path, "/")
	return path != "" && (strings.Trim(whole, "/") == path || strings.HasSuffix(strings.TrimRight(whole, "/"), "/"+path))
}
