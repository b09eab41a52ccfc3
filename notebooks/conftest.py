"""For nbval: its kernels listen at files, since one started beside another may take its port."""

import itertools
import shutil
import tempfile

import jupyter_client.manager
import nbval.kernel


def pytest_configure(config):
    folder = tempfile.mkdtemp(prefix="osnb-", dir="/tmp")  # a socket's path must be short
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    number = itertools.count()

    def manager(**options):
        where = {"transport": "ipc", "ip": f"{folder}/{next(number)}"}
        return jupyter_client.manager.KernelManager(**options, **where)

    nbval.kernel.KernelManager = manager
