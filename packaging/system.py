"""Install, or name in one line, the system packages that no Python wheel brings along."""

import importlib.util
import os
import shutil
import ssl
import subprocess
import sys
from pathlib import Path

# What Qt's xcb, EGL and Wayland plugins and llama.cpp link to, each with the Debian package that holds it.
LIBRARIES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libX11-xcb.so.1": "libx11-xcb1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfreetype6",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgomp.so.1": "libgomp1",
    "libwayland-client.so.0": "libwayland-client0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libxcb-randr0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-render.so.0": "libxcb-render0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libxcb-shm0",
    "libxcb-sync.so.1": "libxcb-sync1",
    "libxcb-util.so.1": "libxcb-util1",
    "libxcb-xfixes.so.0": "libxcb-xfixes0",
    "libxcb-xkb.so.1": "libxcb-xkb1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxkbcommon.so.0": "libxkbcommon0",
}
TOOLS = {"gcc": "gcc", "g++": "g++", "cmake": "cmake"}
TEST_TOOLS = {"Xvfb": "xvfb", "xdotool": "xdotool"}
TEST_FONT = Path("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc")
APT = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}


def provide(*, for_tests: bool) -> None:
    """Install what is missing where we may; else say what to install, and go on."""
    if sys.platform != "linux":
        return
    packages = missing(for_tests=for_tests)
    if packages and not (may_install() and install(packages)):
        print(f"System packages are missing: sudo apt-get install {' '.join(packages)}", flush=True)


def missing(*, for_tests: bool) -> list[str]:
    """Return the Debian names of the packages whose files aren't on this machine."""
    present = known_libraries()
    tools = TOOLS | TEST_TOOLS if for_tests else TOOLS
    packages = [package for soname, package in LIBRARIES.items() if soname not in present]
    packages += [package for tool, package in tools.items() if not shutil.which(tool)]
    if importlib.util.find_spec("ensurepip") is None:  # Debian packs this part of Python on its own
        packages.append(f"python{sys.version_info.major}.{sys.version_info.minor}-venv")
    if not has_certificates():
        packages.append("ca-certificates")
    if for_tests and not TEST_FONT.exists():
        packages.append("fonts-noto-cjk")
    return packages


def known_libraries() -> set[str]:
    """Return the sonames that the loader's cache lists."""
    ldconfig = shutil.which("ldconfig") or "/sbin/ldconfig"  # a user's PATH often lacks /sbin
    listing = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=False).stdout
    return {line.split()[0] for line in listing.splitlines() if "=>" in line}


def has_certificates() -> bool:
    """Tell whether OpenSSL finds the system's certificate authorities."""
    paths = ssl.get_default_verify_paths()
    return bool(paths.cafile or (paths.capath and any(Path(paths.capath).iterdir())))


def may_install() -> bool:
    """Tell whether this is a Debian-like system and we are its root."""
    return os.geteuid() == 0 and shutil.which("apt-get") is not None


def install(packages: list[str]) -> bool:
    """Install packages by apt; tell whether it went well."""
    print(f"Installing system packages: {' '.join(packages)}", flush=True)
    apt = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300", "-o", "Dpkg::Use-Pty=0"]
    subprocess.run([*apt, "update"], env=APT, check=False)
    command = [*apt, "install", "-y", "--no-install-recommends", *packages]
    return subprocess.run(command, env=APT, check=False).returncode == 0
