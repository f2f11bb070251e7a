"""Finding the mount of a folder in the kernel's table."""

import pytest

from connectors.mounts import Mount, find_mount

TABLE = """\
21 1 254:0 / / rw,relatime - ext4 /dev/vda rw
22 21 0:20 / /proc rw - proc proc rw
30 21 0:44 / /mnt/share\\040one rw,relatime shared:7 master:1 - nfs4 nas:/export rw
31 21 254:0 /srv /mnt/bind rw - ext4 /dev/vda rw
32 31 0:50 / /mnt/bind rw - fuse.sshfs user@host: rw
nonsense
"""


@pytest.mark.parametrize(
    ("path", "point", "kind"),
    [
        ("/home/x", "/", "ext4"),
        ("/mnt/share one/drop", "/mnt/share one", "nfs4"),
        ("/mnt/share one", "/mnt/share one", "nfs4"),
        ("/mnt/share onesie", "/", "ext4"),
        ("/mnt/bind/sub", "/mnt/bind", "fuse.sshfs"),  # a later mount hides earlier ones below it
    ],
)
def test_the_innermost_and_last_mount_is_found(path: str, point: str, kind: str) -> None:
    assert find_mount(path, TABLE) == Mount(point=point, kind=kind)


def test_a_file_system_that_other_machines_change_without_notification_is_recognised() -> None:
    remote = {
        kind
        for kind in ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "virtiofs")
        if Mount(point="/", kind=kind).is_remote
    }
    assert len(remote) == 7
    assert not any(
        Mount(point="/", kind=kind).is_remote for kind in ("ext4", "xfs", "btrfs", "tmpfs", "overlay", "fuseblk")
    )
    assert Mount(point="/", kind="overlay").is_layered
