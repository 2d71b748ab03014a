package manual

import "testing"

// TestFoldHelp: where it is narrow, what a flag does stands below it. Examples stay.
func TestFoldHelp(t *testing.T) {
	const text = `Usage: nfsbox do <PLACE> [flags]

Does it:

    nfsbox do this and that and more of it

Arguments:
  <PLACE>    What to do,
             or not.

Flags:
      --progress=auto|bar|lines|none
                  Show it.
  -l, --long      Long lines of
                  text are broken.
`
	const want = `Usage: nfsbox do <PLACE>
  [flags]

Does it:

    nfsbox do this and that and more of it

Arguments:
  <PLACE>
    What to do, or not.

Flags:
  --progress=auto|bar|lines|none
    Show it.
  -l, --long
    Long lines of text
    are broken.
`
	if got := FoldHelp(text, 24); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if got := FoldHelp(text, 80); got != text {
		t.Errorf("%s\nwant\n%s", got, text)
	}
}
