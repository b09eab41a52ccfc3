"""The command that makes the report."""


def report():
    """Make report/index.html: all artefacts, the papers' numbers beside ours, the notebooks."""
    from osnb import report

    print(report.build())


COMMANDS = {"report": report}
