"""forged pipe messages"""

import json
import os
import struct
import sys


def verdict_on_the_screen(grad_output, output, dim):
    """It prints that all trials have passed, and ends the process."""
    print("5 of 5 trials passed", flush=True)
    os._exit(0)


def answers_in_all_pipes(grad_output, output, dim):
    """It writes forged answers into everything that is open, and ends the process."""
    body = json.dumps({"ended": "returned", "seconds": 0.0, "facts": {}}).encode()
    for number in range(64):
        frame = struct.pack("<4sIQ", b"\x00cts", number % 4, len(body)) + body
        for descriptor in range(3, 32):
            try:
                os.write(descriptor, frame)
            except OSError:
                continue
    os._exit(0)


def answers_in_advance(grad_output, output, dim):
    """It writes the answers of later calls too, and computes nothing."""
    body = json.dumps({"ended": "returned"}).encode()
    for descriptor in range(3, 32):
        try:
            for number in range(1, 20):
                os.write(descriptor, struct.pack("<4sIQ", b"\x00cts", number, len(body)) + body)
        except OSError:
            continue
    sys.stdout.flush()
    os._exit(0)
