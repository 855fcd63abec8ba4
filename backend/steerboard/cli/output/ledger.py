"""The cost ledger on a terminal: a line for each phase, failed attempts apart."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from steerboard.cli.output.listing import Column, plain, print_table


def print_ledger(console: Console, ledger: dict[str, Any]) -> None:
    """Prints the ledger, or nothing if nothing has been measured yet."""
    if not ledger["phases"] and not ledger["failed_attempts"]:
        return
    columns = (
        Column("phase"),
        Column("device-seconds", right=True),
        Column("share", right=True, drop=2),
        Column("tokens", right=True, drop=1),
    )
    total = ledger["device_seconds"]
    rows = [
        (
            phase["phase"],
            f"{phase['device_seconds']:.1f}",
            f"{phase['device_seconds'] / total:.0%}" if total else "",
            f"{phase['tokens']:,}" if phase["tokens"] else "",
        )
        for phase in ledger["phases"]
    ]
    print_table(console, columns, rows, heading=True)
    console.print(plain(_total(ledger)))


def _total(ledger: dict[str, Any]) -> str:
    text = f"{ledger['device_seconds']:.1f} device-seconds"
    if ledger["reused"]:
        text += f", {ledger['reused_device_seconds']:.1f} of them spent by earlier equal runs"
        text += f" (reused: {', '.join(ledger['reused'])})"
    if ledger["failed_attempts"]:
        attempts = "1 attempt" if ledger["failed_attempts"] == 1 else f"{ledger['failed_attempts']} attempts"
        text += f"; {ledger['failed_device_seconds']:.1f} more in {attempts} that did not succeed"
    return text
