package export

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
)

// maxGroups bounds the groups of a user: NGROUPS_MAX of Linux. More are an error: a user
// without some of its groups may have rights that these take away.
const maxGroups = 65536

// HostGroups returns all groups of a user of this host, the primary one first,
// and none if there is no such user. It asks getent(1), which knows every source
// of the host's name service switch, such as LDAP. Where there is no getent, or it
// fails for initgroups, package os/user answers: in a static binary it sees only
// /etc/passwd and /etc/group.
func HostGroups(ctx context.Context, uid uint32) ([]uint32, error) {
	getent, err := exec.LookPath("getent")
	if err != nil {
		return fileGroups(uid)
	}
	line, err := ask(ctx, getent, "passwd", strconv.FormatUint(uint64(uid), 10))
	if err != nil || line == "" {
		return nil, err
	}
	name, gid, err := parsePasswd(line, uid)
	if err != nil {
		return nil, err
	}
	line, err = ask(ctx, getent, "initgroups", name)
	if err != nil {
		if ctx.Err() == nil {
			return fileGroups(uid)
		}
		return nil, err
	}
	further, err := parseInitgroups(line, name)
	return unique(append([]uint32{gid}, further...)), err
}

// maxAnswer bounds what is read from getent: maxGroups numbers of ten digits.
const maxAnswer = maxGroups*11 + 4096

// ask asks getent for one key of a database and returns its first line, or "" if
// there is no such key.
func ask(ctx context.Context, getent, database, key string) (string, error) {
	out := &bounded{most: maxAnswer}
	cmd := exec.CommandContext(ctx, getent, "--", database, key)
	cmd.Stdout = out
	if err := cmd.Run(); err != nil {
		// getent(1): the key was not found.
		const notFound = 2
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == notFound {
			return "", nil
		}
		return "", fmt.Errorf("getent %s %q: %w", database, key, err)
	}
	line, _, _ := strings.Cut(string(out.held), "\n")
	return line, nil
}

// bounded is a writer that takes no more than most bytes.
type bounded struct {
	held []byte
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	if len(p) > b.most-len(b.held) {
		return 0, fmt.Errorf("an answer of more than %d bytes", b.most)
	}
	b.held = append(b.held, p...)
	return len(p), nil
}

// parsePasswd returns the name and the primary group in a line of passwd(5). A line
// of another user is an error.
func parsePasswd(line string, uid uint32) (name string, gid uint32, err error) {
	f := strings.Split(line, ":")
	const fields = 7
	if len(f) != fields || f[0] == "" {
		return "", 0, fmt.Errorf("getent passwd %d: %.100q is no line of passwd(5)", uid, line)
	}
	id, err := parseID(f[2])
	if err == nil {
		gid, err = parseID(f[3])
	}
	if err != nil || id != uid {
		return "", 0, fmt.Errorf("getent passwd %d: %.100q is not this user", uid, line)
	}
	return f[0], gid, nil
}

// parseInitgroups returns the groups in getent's answer, which is the user's name,
// with spaces perhaps, and their numbers.
func parseInitgroups(line, name string) ([]uint32, error) {
	numbers, ok := strings.CutPrefix(line, name)
	if !ok {
		return nil, fmt.Errorf("getent initgroups: %.100q is not about %q", line, name)
	}
	var groups []uint32
	for f := range strings.FieldsSeq(numbers) {
		g, err := parseID(f)
		if err != nil || len(groups) >= maxGroups-1 {
			return nil, fmt.Errorf("getent initgroups %q: group %d, %.20q: not a number, or one too many", name, len(groups)+1, f)
		}
		groups = append(groups, g)
	}
	return groups, nil
}

func parseID(s string) (uint32, error) {
	id, err := strconv.ParseUint(s, 10, 32)
	return uint32(id), err
}

// fileGroups asks package os/user.
func fileGroups(uid uint32) ([]uint32, error) {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if _, ok := errors.AsType[user.UnknownUserIdError](err); ok || errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a container without /etc/passwd has no users
	}
	if err != nil {
		return nil, err
	}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, err
	}
	return parseGroups(uid, append([]string{u.Gid}, ids...))
}

// parseGroups returns the groups of a user, the primary one first.
func parseGroups(uid uint32, ids []string) ([]uint32, error) {
	if len(ids) > maxGroups {
		return nil, fmt.Errorf("uid %d has more than %d groups", uid, maxGroups)
	}
	var groups []uint32
	for _, s := range ids {
		g, err := parseID(s)
		if err != nil {
			return nil, fmt.Errorf("groups of uid %d: %w", uid, err)
		}
		groups = append(groups, g)
	}
	return unique(groups), nil
}

// unique removes repetitions and keeps the order.
func unique(groups []uint32) []uint32 {
	out := groups[:0]
	seen := make(map[uint32]bool, len(groups))
	for _, g := range groups {
		if !seen[g] {
			seen[g] = true
			out = append(out, g)
		}
	}
	return out
}
