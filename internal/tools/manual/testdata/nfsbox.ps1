# Completion of nfsbox for PowerShell, made from its own definitions.
$script:NfsboxWords = @{
    'nfsbox' = @('serve', 'bench', 'job', 'completion', '--help')
    'nfsbox serve' = @('--config', '--locks', '--no-locks', '--allow', '--squash', '--grace', '--help')
    'nfsbox bench' = @('read', 'null', '--size', '--help')
    'nfsbox bench read' = @('--load', '--size', '--help')
    'nfsbox bench null' = @('--size', '--help')
    'nfsbox job' = @('--help')
    'nfsbox completion' = @('bash', 'zsh', 'fish', '--help')
}
$script:NfsboxValues = @{
    'nfsbox serve --squash' = @('none', 'root', 'all')
    'nfsbox bench read --load' = @('auto', 'off')
}
$script:NfsboxPlaces = @('nfsbox bench read')
$script:NfsboxJobs = @('nfsbox job')
Register-ArgumentCompleter -Native -CommandName 'nfsbox' -ScriptBlock {
    param($word, $line, $at)
    $typed = @($line.CommandElements | Where-Object { $_.Extent.EndOffset -lt $at } | ForEach-Object { $_.ToString() })
    $path = 'nfsbox'
    foreach ($one in ($typed | Select-Object -Skip 1)) {
        if ($script:NfsboxWords.ContainsKey("$path $one")) { $path = "$path $one" }
    }
    $last = if ($typed.Count -gt 1) { $typed[-1] } else { '' }
    $offer = $script:NfsboxWords[$path]
    if ($script:NfsboxValues.ContainsKey("$path $last")) {
        $offer = $script:NfsboxValues["$path $last"]
    } elseif (-not $word.StartsWith('-') -and $script:NfsboxPlaces -contains $path) {
        $offer = @(& 'nfsbox' complete --plain -- $word 2>$null)
    } elseif (-not $word.StartsWith('-') -and $script:NfsboxJobs -contains $path) {
        $offer = @(& 'nfsbox' complete --jobs -- $word 2>$null)
    }
    $offer | Where-Object { $_ -and $_.StartsWith($word, [StringComparison]::Ordinal) } | ForEach-Object {
        [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
    }
}
