# Completion of nfsbox for fish, made from its own definitions.
function __nfsbox_is --description 'the command line is one of this command'
	set -l path 'nfsbox'
	for word in (commandline -opc)[2..-1]
		switch "$path $word"
			case 'nfsbox serve' 'nfsbox bench' 'nfsbox bench read' 'nfsbox bench null' 'nfsbox job' 'nfsbox completion'
				set path "$path $word"
		end
	end
	test "$path" = "$argv"
end
complete -c 'nfsbox' -n '__nfsbox_is nfsbox' -f -a 'serve' -d 'Serve a directory'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox' -f -a 'bench' -d 'Measure a server: any'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox' -f -a 'job' -d 'Show a job'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox' -f -a 'completion' -d 'Print a completion'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox' -s 'h' -l 'help' -d 'Show context-sensitive help.'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox serve' -s 'c' -l 'config' -r -F -d 'Read nfsbox.toml.'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox serve' -l 'locks' -d 'Serve locks; it\'s [the] default: yes.'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox serve' -l 'no-locks' -d 'Serve locks; it\'s [the] default: yes.'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox serve' -l 'allow' -x -d 'Who may mount (10.0.0.0/8, *.example.org).'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox serve' -l 'squash' -x -a 'none root all' -d 'Who becomes nobody.'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox serve' -l 'grace' -x -d '.5s is a start; "quoted" and back\\slash and $HOME and \'so\'.'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox serve' -s 'h' -l 'help' -d 'Show context-sensitive help.'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox bench' -f -a 'read' -d 'Measure READ'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox bench' -f -a 'null' -d 'Measure NULL'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox bench' -l 'size' -x -d 'Of one operation.'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox bench' -s 'h' -l 'help' -d 'Show context-sensitive help.'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox bench read' -l 'load' -x -a 'auto off' -d 'Calls at once.'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox bench read' -l 'size' -x -d 'Of one operation.'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox bench read' -s 'h' -l 'help' -d 'Show context-sensitive help.'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox bench read' -a '(type -q nfsbox; and nfsbox complete -- (commandline -ct) 2>/dev/null)'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox bench read; and string match -q \'*:*\' -- (commandline -ct)' -f -a '(type -q nfsbox; and nfsbox complete -- (commandline -ct) 2>/dev/null)'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox bench null' -l 'size' -x -d 'Of one operation.'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox bench null' -s 'h' -l 'help' -d 'Show context-sensitive help.'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox job' -s 'h' -l 'help' -d 'Show context-sensitive help.'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox job' -f -a '(type -q nfsbox; and nfsbox complete --jobs -- (commandline -ct) 2>/dev/null)'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox completion' -s 'h' -l 'help' -d 'Show context-sensitive help.'
complete -c 'nfsbox' -n '__nfsbox_is nfsbox completion' -f -a 'bash zsh fish'
