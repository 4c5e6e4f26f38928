package store

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// networkFilesystems are the magic numbers of statfs(2) for file systems whose
// locks or shared memory do not hold between machines
// (linux/include/uapi/linux/magic.h and the file systems' own sources).
var networkFilesystems = map[uint32]string{
	0x6969:     "NFS",
	0x517B:     "SMB",
	0xFF534D42: "CIFS",
	0xFE534D42: "SMB 2",
	0x01021997: "9P",
	0x73757245: "Coda",
	0x564C:     "NCP",
	0x5346414F: "AFS",
	0x6B414653: "AFS",
	0x00C36400: "Ceph",
	0x0BD00BD0: "Lustre",
	0x47504653: "GPFS",
	0x19830326: "BeeGFS",
	0xAAD7AAEA: "PanFS",
}

const fuseMagic = 0x65735546

// networkFuse are the FUSE file systems that lead to another machine; the
// others (ntfs-3g, mergerfs, …) are local disks.
var networkFuse = []string{"sshfs", "rclone", "s3fs", "goofys", "gcsfuse", "blobfuse", "blobfuse2",
	"glusterfs", "cephfs", "davfs", "davfs2", "curlftpfs", "smbnetfs", "juicefs", "seaweedfs", "moosefs", "mfs", "geesefs", "mountpoint-s3"}

// localDisk refuses a directory on a network file system.
func localDisk(dir string) error {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return fmt.Errorf("ask for the file system of %s: %w", dir, err)
	}
	magic := uint32(stat.Type)
	if magic != fuseMagic {
		return refuseNetwork(dir, networkFilesystems[magic])
	}
	return refuseNetwork(dir, networkFuseName(mountType(dir)))
}

// refuseNetwork is nil for a file system without a name in the lists.
func refuseNetwork(dir, name string) error {
	if name == "" {
		return nil
	}
	return fmt.Errorf("%s: %w (%s): locks do not hold there and the file would be damaged: set database to a path on a local disk",
		dir, ErrNetworkFilesystem, name)
}

// networkFuseName returns the name of a mount type such as "fuse.sshfs" when
// it leads to another machine.
func networkFuseName(mountType string) string {
	_, name, _ := strings.Cut(mountType, ".")
	for _, known := range networkFuse {
		if name == known {
			return "FUSE " + name
		}
	}
	return ""
}

// mountType is the type of the mount that a directory lies on, "" where it can
// not be told.
func mountType(dir string) string {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	defer file.Close()
	best, kind := -1, ""
	for lines := bufio.NewScanner(file); lines.Scan(); {
		// 36 35 98:0 /root /mount/point options… - type source options
		left, right, ok := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(left)
		if !ok || len(fields) < 5 {
			continue
		}
		point := unescapeMount.Replace(fields[4])
		if len(point) >= best && (dir == point || point == "/" || strings.HasPrefix(dir, point+"/")) {
			best, kind = len(point), strings.Fields(right)[0]
		}
	}
	return kind
}

// unescapeMount undoes the octal escapes of proc(5).
var unescapeMount = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
