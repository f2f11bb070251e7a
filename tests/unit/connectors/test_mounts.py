"""Finding the mount of a folder in the kernel's table."""

from pathlib import Path

import pytest

from connectors.mounts import Mount, MountGuard, current_mount, expected_point, find_mount
from ingestd.sdk import SourceUnmounted

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


FSTAB = """\
# /mnt/comment is no mount
/dev/vda / ext4 defaults 0 1
nas:/export /mnt/share\\040one/ nfs4 _netdev,nofail 0 0
nas:/other /mnt/by-hand nfs4 noauto,ro 0 0
nas:/deep /mnt/share\\040one/deep nfs4 defaults 0 0
UUID=1 none swap sw 0 0
too short
"""


@pytest.mark.parametrize(
    ("path", "held_by", "expected"),
    [
        ("/mnt/share one/drop", "/", "/mnt/share one"),
        ("/mnt/share one", "/", "/mnt/share one"),
        ("/mnt/share one/drop", "/mnt/share one", ""),
        ("/mnt/share one/deep/drop", "/mnt/share one", "/mnt/share one/deep"),
        ("/mnt/share onesie", "/", ""),
        ("/mnt/by-hand/drop", "/", ""),
        ("/mnt/comment", "/", ""),
        ("/home/drop", "/", ""),
    ],
)
def test_a_mount_that_the_table_of_the_machine_names_is_expected(path: str, held_by: str, expected: str) -> None:
    assert expected_point(path, Mount(point=held_by, kind="ext4"), FSTAB) == expected


def test_an_empty_mount_point_is_recognised_after_a_restart(tmp_path: Path) -> None:
    table = tmp_path / "fstab"
    table.write_text(f"nas:/export {tmp_path}/share nfs4 nofail 0 0\n")
    (tmp_path / "share" / "drop").mkdir(parents=True)
    guard = MountGuard(tmp_path / "share" / "drop", "", table)
    with pytest.raises(SourceUnmounted, match=r"belongs to .*/share, which .*/fstab names"):
        guard.check()
    mount = current_mount(tmp_path)
    assert mount is not None
    table.write_text(f"/dev/vda {mount.point} {mount.kind} defaults 0 0\n")
    guard.check()
