package manual

import (
	"fmt"
	"strings"
)

// PowerShell is a completion script for PowerShell 5.1 and later. Where it has nothing to offer,
// the shell completes file names.
func PowerShell(c *Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Completion of %s for PowerShell, made from its own definitions.\n", c.name())
	b.WriteString("$script:NfsboxWords = @{\n")
	for _, x := range c.all() {
		fmt.Fprintf(&b, "    %s = @(%s)\n", psWord(x.line()), psWords(append(x.argWords(), x.flagWords()...)))
	}
	b.WriteString("}\n$script:NfsboxValues = @{\n")
	for _, x := range c.all() {
		for i := range x.Flags {
			if f := &x.Flags[i]; len(f.Choices) > 0 {
				fmt.Fprintf(&b, "    %s = @(%s)\n", psWord(x.line()+" --"+f.Name), psWords(f.Choices))
			}
		}
	}
	var places, jobs []string
	for _, x := range c.all() {
		if x.places() {
			places = append(places, x.line())
		}
		if x.jobs() {
			jobs = append(jobs, x.line())
		}
	}
	fmt.Fprintf(&b, "}\n$script:NfsboxPlaces = @(%s)\n$script:NfsboxJobs = @(%s)\n%s", psWords(places), psWords(jobs), strings.ReplaceAll(psScript, "NAME", c.name()))
	return b.String()
}

// psScript finds the command that is being typed, and what it may go on with.
const psScript = `Register-ArgumentCompleter -Native -CommandName 'NAME' -ScriptBlock {
    param($word, $line, $at)
    $typed = @($line.CommandElements | Where-Object { $_.Extent.EndOffset -lt $at } | ForEach-Object { $_.ToString() })
    $path = 'NAME'
    foreach ($one in ($typed | Select-Object -Skip 1)) {
        if ($script:NfsboxWords.ContainsKey("$path $one")) { $path = "$path $one" }
    }
    $last = if ($typed.Count -gt 1) { $typed[-1] } else { '' }
    $offer = $script:NfsboxWords[$path]
    if ($script:NfsboxValues.ContainsKey("$path $last")) {
        $offer = $script:NfsboxValues["$path $last"]
    } elseif (-not $word.StartsWith('-') -and $script:NfsboxPlaces -contains $path) {
        $offer = @(& 'NAME' complete --plain -- $word 2>$null)
    } elseif (-not $word.StartsWith('-') -and $script:NfsboxJobs -contains $path) {
        $offer = @(& 'NAME' complete --jobs -- $word 2>$null)
    }
    $offer | Where-Object { $_ -and $_.StartsWith($word, [StringComparison]::Ordinal) } | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
    }
}
`

func psWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = psWord(w)
	}
	return strings.Join(quoted, ", ")
}

// psWord is s as one word for PowerShell, whose single quotes know one escape.
func psWord(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
