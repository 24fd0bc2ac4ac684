"""The first module of the single file: unpack it into the user's cache, once, and run the `noxu` command from there.

It runs on every Python 3, to say so if another one is needed. XDG_CACHE_HOME is the folder of the cache (~/.cache).
"""

import json
import os
import shutil
import sys
import sysconfig
import tempfile
import zipfile


def main():
    with zipfile.ZipFile(sys.path[0]) as archive:
        description = json.loads(archive.read("noxu.json"))
        error = unsuitable(description)
        if error:
            sys.exit("noxu: %s" % error)
        try:
            packages = unpacked(archive, description["digest"])
        except OSError as error:
            sys.exit("noxu: cannot unpack this file: %s; set XDG_CACHE_HOME to a folder that can be written" % error)
    sys.path[0] = packages
    from noxu.__main__ import command

    command()


def unsuitable(description):
    """Why this Python cannot run the archive, empty if it can."""
    needed = "Python %d.%d on %s" % (*description["python"], description["platform"])
    found = "Python %d.%d on %s" % (*sys.version_info[:2], sysconfig.get_platform())
    return "" if needed == found else "this file is for %s, and this is %s" % (needed, found)


def unpacked(archive, digest):
    """The folder with the packages. Several processes may unpack at once: the first one that is ready wins."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(cache, "noxu", digest)
    if not os.path.isdir(folder):
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        temporary = tempfile.mkdtemp(dir=os.path.dirname(folder))
        try:
            archive.extractall(temporary)
            os.rename(temporary, folder)
        except OSError:
            shutil.rmtree(temporary, ignore_errors=True)
            if not os.path.isdir(folder):
                raise
    return os.path.join(folder, "site-packages")


if __name__ == "__main__":
    main()
