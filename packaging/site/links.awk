# Links that lead out of the site lead to the repository, if that has them. Others stay, and
# mkdocs refuses those that lead nowhere.
{
	line = ""
	while (match($0, /\]\([^)]*\)/)) {
		link = substr($0, RSTART + 2, RLENGTH - 3)
		line = line substr($0, 1, RSTART + 1) target(link) ")"
		$0 = substr($0, RSTART + RLENGTH)
	}
	print line $0
}

function target(link,   file, base) {
	file = link
	sub(/#.*/, "", file)
	base = page
	sub(/[^\/]*$/, "", base)
	if (file == "" || file ~ /^[a-z]+:/ || there(base file)) return link
	gsub(/\.\.\//, "", file)
	return there(file) ? code "/" file : link
}

function there(path) { gsub(/'/, "", path); return system("test -e '" path "'") == 0 }
