# Completion of nfsbox for bash, made from its own definitions.
_nfsbox() {
	local at=$COMP_CWORD cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} path words= ask= line i
	if [[ $cur == = ]]; then
		cur=
	elif [[ $prev == = ]] && ((at > 1)); then
		prev=${COMP_WORDS[COMP_CWORD-2]}
	fi
	path='nfsbox'
	for ((i = 1; i < at; i++)); do
		case "$path ${COMP_WORDS[i]}" in
		'nfsbox serve') path='nfsbox serve' ;;
		'nfsbox bench') path='nfsbox bench' ;;
		'nfsbox bench read') path='nfsbox bench read' ;;
		'nfsbox bench null') path='nfsbox bench null' ;;
		'nfsbox job') path='nfsbox job' ;;
		'nfsbox completion') path='nfsbox completion' ;;
		esac
	done
	case "$path $prev" in
	'nfsbox serve --config' | 'nfsbox serve -c') : ;;
	'nfsbox serve --allow') : ;;
	'nfsbox serve --squash') words='none root all' ;;
	'nfsbox serve --grace') : ;;
	'nfsbox bench --size') : ;;
	'nfsbox bench read --load') words='auto off' ;;
	'nfsbox bench read --size') : ;;
	'nfsbox bench null --size') : ;;
	*)
		case $path in
		'nfsbox')
			case $cur in
			-*) words='--help' ;;
			*) words='serve bench job completion' ;;
			esac
			;;
		'nfsbox serve')
			case $cur in
			-*) words='--config --locks --no-locks --allow --squash --grace --help' ;;
			*) : ;;
			esac
			;;
		'nfsbox bench')
			case $cur in
			-*) words='--size --help' ;;
			*) words='read null' ;;
			esac
			;;
		'nfsbox bench read')
			case $cur in
			-*) words='--load --size --help' ;;
			*) ask=--plain ;;
			esac
			;;
		'nfsbox bench null')
			case $cur in
			-*) words='--size --help' ;;
			*) : ;;
			esac
			;;
		'nfsbox job')
			case $cur in
			-*) words='--help' ;;
			*) ask=--jobs ;;
			esac
			;;
		'nfsbox completion')
			case $cur in
			-*) words='--help' ;;
			*) words='bash zsh fish' ;;
			esac
			;;
		esac
		;;
	esac
	COMPREPLY=()
	while IFS= read -r line; do
		[[ -n $line ]] && COMPREPLY+=("$line")
	done < <(compgen -W "$words" -- "$cur")
	[[ -n $ask ]] || return
	local full=${COMP_LINE:0:COMP_POINT}
	full=${full##*[[:space:]]}
	while IFS= read -r line; do
		COMPREPLY+=("${line#"${full%"${full##*:}"}"}")
	done < <("${COMP_WORDS[0]}" complete "$ask" -- "$full" 2>/dev/null)
	if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[/:] ]]; then
		compopt -o nospace 2>/dev/null
	fi
	if [[ $ask == --plain && $full != *:* && ${#COMPREPLY[@]} != 0 ]]; then
		compopt -o filenames 2>/dev/null
		while IFS= read -r line; do
			COMPREPLY+=("$line")
		done < <(compgen -f -- "$cur")
	fi
}
complete -o bashdefault -o default -F _nfsbox 'nfsbox'
