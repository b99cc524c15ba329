"""The verb ``cite``: BibTeX entries of cwb and of the papers of methods."""

from __future__ import annotations

import re
from importlib.resources import files

from ..core.errors import InputError, one_of
from ..core.option_names import verb
from ..harness import registry

#: An entry of BibTeX and the methods that it is for, which are its keywords.
_ENTRY = re.compile(r"^@\w+\{.*?^  keywords = \{(.*?)\}\n\}\n", re.MULTILINE | re.DOTALL)


@verb
def cite(*methods: str) -> str:
    """Return BibTeX entries of cwb and the papers of methods, as ``cwb cite`` does.

    Parameters
    ----------
    *methods : str
        Names of methods and formulations; by default all methods.

    Raises
    ------
    InputError
        If there is no such method.
    """
    names = {*registry.names(), *registry.formulation_names()}
    for name in methods:
        if name not in names:
            raise InputError(f"there is no method {name!r}{one_of(name, sorted(names))}")
    cited = set(methods or registry.names())
    for name in cited & set(registry.formulation_names()):
        cited |= {name.partition("/")[0], registry.formulation(name).agrees_with}
    text = files("cwb.studies").joinpath("papers/references.bib").read_text("utf-8")
    entries = ((match[0], set(re.split(r",\s*", match[1]))) for match in _ENTRY.finditer(text))
    selection = "\n".join(entry for entry, keywords in entries if keywords == {""} or keywords & cited)
    return selection.replace(",\n  keywords = {}", "")
