"""The command that makes the report."""


def report():
    """Make report/index.html: all artefacts, the papers' numbers beside ours, the notebooks."""
    from osnb import report

    index = report.build()
    print(index)
    if said := report.remark(index):
        print(said)


COMMANDS = {"report": report}
