"""One of the processes that torchrun starts: python -m osnb.train.worker FILE."""

import faulthandler
import os
import sys
from pathlib import Path

import torch
from torch import distributed

from osnb.train import ranks

JOIN = 60  # seconds that processes may take to meet


def main(file: str) -> None:
    """Join the others, then do the job in the file."""
    import cloudpickle

    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    # gloo sometimes waits for ever after a restart; who does not meet the others starts again
    faulthandler.dump_traceback_later(JOIN, exit=True)
    distributed.init_process_group("nccl" if cuda else "gloo")
    faulthandler.cancel_dump_traceback_later()
    try:
        cloudpickle.loads(Path(file).read_bytes())()
    except KeyboardInterrupt as interrupt:
        sys.exit(f"interrupted: {interrupt}")
    except Exception as error:
        ranks.tell({"error": f"{type(error).__name__}: {error}"[:2000]}, every=True)
        raise
    finally:
        distributed.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
