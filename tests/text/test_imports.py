"""Text is read without torch, and help is shown without sentencepiece."""

import subprocess
import sys


def test_reading_text_imports_nothing_heavy() -> None:
    code = (
        "import sys, regarde.text, regarde.data.corpus, regarde.data.sampling;"
        "assert not {'torch', 'sentencepiece'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
