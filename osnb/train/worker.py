"""One of the processes that share batches: python -m osnb.train.worker STORE, its job in stdin."""

import faulthandler
import os
import sys
import threading

import torch
from torch import distributed

from osnb.train import ranks

JOIN = 60  # seconds that processes may take to meet


def main(store: str) -> None:
    """Join the others through the file `store`, then do the job that our owner has written."""
    import cloudpickle

    size = int.from_bytes(sys.stdin.buffer.read(8), "big")
    content = sys.stdin.buffer.read(size)
    threading.Thread(target=_end_with_owner, daemon=True).start()
    rank, world = map(int, os.environ["OSNB_RANK"].split())
    cuda = torch.cuda.is_available()
    if cuda:
        torch.cuda.set_device(rank)
    # gloo sometimes waits for ever; who does not meet the others starts again
    faulthandler.dump_traceback_later(JOIN, exit=True)
    meet = {"store": distributed.FileStore(store, world), "rank": rank, "world_size": world}
    distributed.init_process_group("nccl" if cuda else "gloo", **meet)
    faulthandler.cancel_dump_traceback_later()
    try:
        cloudpickle.loads(content)()
    except KeyboardInterrupt:
        sys.exit(ranks.INTERRUPTED)
    except Exception as error:
        ranks.tell({"error": f"{type(error).__name__}: {error}"[:2000]}, every=True)
        raise
    finally:
        distributed.destroy_process_group()


def _end_with_owner() -> None:
    """End as soon as the owner's end of the pipe is closed, by itself or by its death."""
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1])
