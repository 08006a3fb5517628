"""Executes the tutorials, in a process without pytest: Jupyter's own warnings are no errors here.

usage: notebooks.py FOLDER [NAME ...]   (executed copies of all tutorials, or of those named, go to FOLDER)

With `docs/tutorials` as FOLDER the outputs in the repository are written anew. A cell that raises ends the command.
"""

import sys
from pathlib import Path

TUTORIALS = Path(__file__).parents[2] / "docs" / "tutorials"
SECONDS = 120  # for one cell
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def executed(file):
    """The notebook with new outputs, and with nothing in its metadata that tells of the machine."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(file, as_version=4)
    client = NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", record_timing=False)
    client.coalesce_streams = True  # one output for all that a cell prints
    client.execute(cwd=str(TUTORIALS))
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if not is_bar(output)]
            for output in cell.outputs:
                clean(output)
    return notebook


def is_bar(output):
    """Whether an output is the bar of a job that took long on this machine."""
    return "<progress" in output.get("data", {}).get("text/html", "")


def clean(output):
    """Leaves of an output the one form that a page shows."""
    data = output.get("data", {})
    if "text/html" in data or "image/png" in data:
        data.pop("text/plain", None)  # a table's or a figure's `repr`
    if "metadata" in output:
        output.metadata = {}


def main():
    """Executes the notebooks and writes the copies."""
    import nbformat

    folder, names = Path(sys.argv[1]), sys.argv[2:]
    for file in sorted(TUTORIALS.glob("*.ipynb")):
        if not names or file.stem in names:
            nbformat.write(executed(file), folder / file.name)


if __name__ == "__main__":
    main()
