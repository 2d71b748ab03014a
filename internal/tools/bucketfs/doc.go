// Package bucketfs is a vfs.FS over the plain objects of a bucket of S3: what lies there is what other programs see as well, under the
// names that the files have.
//
// # Keys
//
// A file DIR/NAME is the object PREFIX/DIR/NAME. A byte of a name that S3 or XML cannot have (control characters, what is no
// UTF-8, U+FFFE and U+FFFF) is %XX; "%" is %25 where it would be read as such an escape, and only there (segment). So no two
// names have one key, and no two keys one name. A directory is what begins with its name and a slash; the object of that very key, which is
// empty, has its mode, owner and time, and is there for each directory that was made here. A symbolic link is NAME.rclonelink, whose content is
// the target, as with rclone's --links; in a name that ends so itself, the point of the suffix is %2E.
//
// A key that is no name is foreign: with an empty part, or ".", "..", raw bytes from above, or one longer than a name can be; or if the
// name belongs to another object already: a file goes before a link, and a link before a directory. A listing has it under a name that
// is none (it begins with a slash), and with the reason ([vfs.Entry]'s Foreign), so that whoever walks the tree reports it and counts it. It cannot be opened or removed.
//
// # Attributes
//
// Mode, owner, group and the time of the last change stand in the metadata, as rclone writes them. Where they are missing, the time is that of
// the upload, of a directory without an object 1970; the mode is 0644, or 0755; and the owner is the process's user. The ctime is the time
// of the upload, in seconds. A listing that is to have attributes asks for each object (HEAD), many at once.
//
// # Changes
//
// A file is made whole ([vfs.Maker]): its bytes and attributes are known before it has the name, and what had the name is there until then. It cannot be
// written to, renamed or linked. Everything is stable when it was answered.
//
// # Memory
//
// It does not grow with the tree. Handles are keys below the root. Longer ones than fit are in a table with a
// bound (maxTable), and so is where listings were broken off.
package bucketfs
