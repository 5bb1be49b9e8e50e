# SPDX-License-Identifier: Apache-2.0
"""Builds kernels that Debian does not package, from Debian's kernel source, in ten minutes: arm64 with 64 KiB pages and
52-bit addresses (6.12-64k). The configuration is that of Debian's arm64 kernel, without modules and without features
that QEMU does not need."""
import os
import pathlib
import shutil
import tempfile

import images
import machines

pages = "-64k"
programs = "aarch64-linux-gnu-gcc", "make", "flex", "bison", "bc", "pahole"

on = """ARM64_64K_PAGES ARM64_VA_BITS_52 ARM64_PA_BITS_52 VIRTIO VIRTIO_PCI NET_9P NET_9P_VIRTIO 9P_FS OVERLAY_FS FUSE_FS
    DEBUG_INFO DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT DEBUG_INFO_BTF""".split()
off = """ARM64_4K_PAGES MODULES MODULE_SIG DEBUG_INFO_NONE RANDOMIZE_BASE COMPAT KEXEC KEXEC_FILE CRASH_DUMP HIBERNATION SUSPEND
    ACPI VIRTUALIZATION XEN CPU_FREQ CPU_IDLE MEMORY_HOTPLUG SECURITY_SELINUX SECURITY_APPARMOR SECURITY_TOMOYO SECURITY_SMACK
    SECURITY_YAMA SECURITY_LOCKDOWN_LSM INTEGRITY SYSTEM_TRUSTED_KEYRING NETFILTER IPV6 WIRELESS WLAN ETHERNET INFINIBAND
    USB_SUPPORT DRM FB SOUND MEDIA_SUPPORT HID I2C SPI GPIOLIB PINCTRL REGULATOR MMC MTD ATA SCSI MD IIO HWMON EDAC THERMAL
    POWER_SUPPLY PWM WATCHDOG REMOTEPROC RPMSG EXTCON CHROME_PLATFORMS SURFACE_PLATFORMS CORESIGHT FPGA TEE NVMEM CRYPTO_HW
    INPUT_TOUCHSCREEN INPUT_MISC BTRFS_FS NFS_FS""".split()


def is_built(series):
    return series.endswith(pages)


def configuration(debians):
    """Debian's configuration without modules, and without SoC families, which virtual machines do not need."""
    kept = [line for line in debians.splitlines() if not line.endswith("=m") and not line.startswith("CONFIG_ARCH_")]
    return "\n".join([*kept, *(f"# CONFIG_{name} is not set" for name in off), *(f"CONFIG_{name}=y" for name in on), ""])


def build(series, folder):
    """Fills the folder as images.fetch() does. Raises Missing."""
    images.need(programs, "kernel-source")
    images.need_plain_path("a kernel")
    names, releases = images.packages()
    plain = series.removesuffix(pages)
    source = f"linux-source-{plain}"
    if machines.chosen.name != "arm64" or not releases.get(plain) or source not in names:
        raise images.Missing(f"cannot build {series}: this needs --machine arm64, and Debian's {source} and kernel {plain} for arm64")
    with tempfile.TemporaryDirectory(prefix="source-", dir=images.cache) as place:
        place = pathlib.Path(place)
        images.unpack(place, source, f"linux-image-{releases[plain][0]}")
        images.run("tar", "-xf", str(place / "usr/src" / f"{source}.tar.xz"), "-C", str(place))
        tree = place / source
        (tree / ".config").write_text(configuration(next((place / "boot").glob("config-*")).read_text()))
        make = ["make", "-s", "-C", str(tree), f"-j{len(os.sched_getaffinity(0))}", "ARCH=arm64", "CROSS_COMPILE=aarch64-linux-gnu-",
                f"LOCALVERSION={pages}"]
        images.run(*make, "olddefconfig")
        images.run(*make, "Image")
        shutil.copy(tree / "arch/arm64/boot/Image", folder / "vmlinuz")
        (folder / "release").write_text(images.run(*make, "kernelrelease").split()[-1] + "\n")
    (folder / "modules").mkdir()
    (folder / "whole").touch()
