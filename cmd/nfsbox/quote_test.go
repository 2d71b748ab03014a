package main

import (
	"os/exec"
	"testing"
)

// TestQuoteArg has a shell read what is written for it.
func TestQuoteArg(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("NOT TESTED: there is no bash")
	}
	for _, arg := range []string{
		"plain", "", "nfs://h:1/e?timeo=10&retrans=1", "it's", `back\slash`, "a b", "$HOME", "*", "~", "ü",
		"line\nbreak", "\x1b[31m", "bytes \xff\xfe", `all ' of \ it` + "\x01" + "7", "\u202e",
	} {
		out, err := exec.Command(bash, "-c", "printf %s "+quoteArg(arg)).Output()
		if err != nil || string(out) != arg {
			t.Errorf("%q is written as %s, and read as %q (%v)", arg, quoteArg(arg), out, err)
		}
	}
}
