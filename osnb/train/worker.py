"""One of the processes that torchrun starts: python -m osnb.train.worker FILE."""

import faulthandler
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from torch import distributed

from osnb.train import ranks

JOIN = 60  # seconds that processes may take to meet


def main(file: str) -> None:
    """Join the others, then do the job in the file."""
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    # gloo sometimes waits for ever after a restart; who does not meet the others starts again
    faulthandler.dump_traceback_later(JOIN, exit=True)
    distributed.init_process_group("nccl" if cuda else "gloo")
    faulthandler.cancel_dump_traceback_later()
    try:
        _job(Path(file))()
    except KeyboardInterrupt as interrupt:
        sys.exit(f"interrupted: {interrupt}")
    except Exception as error:
        ranks.tell({"error": f"{type(error).__name__}: {error}"[:2000]}, every=True)
        raise
    finally:
        distributed.destroy_process_group()


def _job(file: Path) -> Callable[[], None]:
    """What the file holds, which loading it may already carry out: hence only our own.

    Raises:
        PermissionError: it belongs to another user, or others may write to it.
    """
    import cloudpickle

    with file.open("rb") as opened:
        about = os.fstat(opened.fileno())  # of what is read, whoever renames files meanwhile
        if about.st_uid != os.geteuid() or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(f"{file} is not only yours to write, so it is not loaded")
        return cloudpickle.loads(opened.read())


if __name__ == "__main__":
    main(sys.argv[1])
