"""`python -m steerboard_workers.model_host DESCRIPTOR`: serve one model, asked through that pipe.

It knows neither database nor broker nor store. Who started it ends it when it hangs; a broken model ends it alone.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import traceback

from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.stage.events import Failed
from steerboard_workers.model_host.messages import REQUEST, Done, Failure, Request, Stop
from steerboard_workers.stages.__main__ import QUIET, failure_of
from steerboard_workers.stages.runtime import EventWriter


class Inbox:
    """Requests in order. `stop` is set once the sender of the current one no longer waits for it."""

    def __init__(self, descriptor: int) -> None:
        self.stop = threading.Event()
        self._requests: queue.SimpleQueue[Request] = queue.SimpleQueue()
        threading.Thread(target=self._read, args=(descriptor,), name="inbox", daemon=True).start()

    def next(self) -> Request:
        return self._requests.get()

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb") as pipe:
            for line in pipe:
                request = REQUEST.validate_json(line)
                if isinstance(request, Stop):
                    self.stop.set()
                    continue
                self.stop.clear()
                self._requests.put(request)
        os._exit(0)  # no one is left who could ask


def main(descriptor: int) -> int:
    answers = EventWriter.take_stdout()
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    inbox = Inbox(descriptor)
    try:
        from steerboard_workers.model_host.serving import ServedModel

        model = ServedModel(answers.write, inbox.stop)
    except Exception as error:
        traceback.print_exc()
        answers.write(Failure(failed=failure_of(error), ends=True))
        return 1
    while True:
        request = inbox.next()
        try:
            model.serve(request)
            answers.write(Done())
        except SteerboardError as error:
            answers.write(Failure(failed=failure_of(error), ends=False))
        except BrokenPipeError:
            return 1
        except BaseException as error:
            # Also a panic of a library in Rust, which is not an `Exception`.
            traceback.print_exc()
            answers.write(Failure(failed=_crash(error), ends=True))
            return 1


def _crash(error: BaseException) -> Failed:
    failed = failure_of(error)
    return failed.model_copy(update={"code": "model_crashed"}) if failed.code == "stage_crashed" else failed


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
