package runner

import (
	"path/filepath"
	"syscall"
)

// A FileSystem is what a folder lies on.
type FileSystem struct {
	Name    string // "NFS"; "" = a local one
	Refused bool   // a database on it would not be safe
}

// networkFS are file systems that are shared over a network, by the number
// that statfs gives. SQLite's locks and its shared memory do not hold on them.
var networkFS = map[uint32]FileSystem{
	0x6969: {"NFS", true}, 0xff534d42: {"CIFS", true}, 0x517b: {"SMB", true}, 0xfe534d42: {"SMB 2", true}, 0x47504653: {"GPFS", true},
	0x0bd00bd0: {"Lustre", true}, 0x19830326: {"BeeGFS", true}, 0x00c36400: {"Ceph", true}, 0x01021997: {"9p", true}, 0x5346414f: {"AFS", true},
	0x65735546: {"FUSE", false}, // a local one as often as not
}

// FileSystemOf looks at a folder, or at the nearest one above it that exists.
func FileSystemOf(dir string) FileSystem {
	var st syscall.Statfs_t
	for syscall.Statfs(dir, &st) != nil && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	return networkFS[uint32(st.Type)]
}
